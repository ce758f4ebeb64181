// Package rollout determines which control plane Machines have to be replaced, and why. [rolloutReasons] compares a Machine
// with its KubeadmControlPlane: version, infrastructure machine template, kubeadm's configuration, and the times of
// spec.rollout. The package also computes the kubeadmConfig of a new Machine ([desiredConfig]), and selects the
// failure domain of a new Machine and the Machine to delete ([domainForNew], [nextToDelete]).
//
//	cause             a Machine is replaced if
//	Version           its version differs
//	Infrastructure    it was cloned from another template
//	kubeadmConfig     its configuration for init or join differs, except for CoreDNS
//	rolloutAfter      spec.rollout.after has passed, and it was created before that time
//	certificateExpiry its certificates expire within spec.rollout.before.certificatesExpiryDays
//
// Fields that are propagated in place (metadata, timeouts, gates, taints) are no reason. The controller decides when
// a Machine is replaced.
package controlplane
