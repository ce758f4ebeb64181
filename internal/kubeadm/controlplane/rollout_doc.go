// Package rollout determines which control plane Machines have to be replaced, and why. [RolloutReasons] compares a Machine
// with its KubeadmControlPlane: version, infrastructure machine template, kubeadm's configuration, and the times of
// spec.rollout. The package also computes the KubeadmConfig of a new Machine ([DesiredConfig]), and selects the
// failure domain of a new Machine and the Machine to delete ([DomainForNew], [NextToDelete]).
//
//	cause             a Machine is replaced if
//	Version           its version differs
//	Infrastructure    it was cloned from another template
//	KubeadmConfig     its configuration for init or join differs, except for CoreDNS
//	RolloutAfter      spec.rollout.after has passed, and it was created before that time
//	CertificateExpiry its certificates expire within spec.rollout.before.certificatesExpiryDays
//
// Fields that are propagated in place (metadata, timeouts, gates, taints) are no reason. The controller decides when
// a Machine is replaced.
package controlplane
