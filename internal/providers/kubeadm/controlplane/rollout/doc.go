// Package rollout says which control plane Machines have to be replaced, and why.
//
// Does: compares a Machine with what its KubeadmControlPlane asks for ([Reasons]): version, template of the infrastructure machine,
// kubeadm's configuration, and the times of spec.rollout. Says what the KubeadmConfig of a new Machine contains
// ([DesiredConfig]), and chooses the failure domain of a new Machine and the Machine to delete ([DomainForNew], [NextToDelete]).
//
//	cause             replaced when
//	Version           its version is another
//	Infrastructure    it was cloned from another template
//	KubeadmConfig     its configuration differs: that of the init or of the join, whichever it has; CoreDNS does not count
//	RolloutAfter      spec.rollout.after has passed, and it is older than that
//	CertificateExpiry its certificates expire within spec.rollout.before.certificatesExpiryDays
//
// Never: decides when a Machine is replaced. What follows in place (metadata, timeouts, gates, taints) is no reason.
//
// Read first: [Reasons].
package rollout
