// Package personal issues credentials of a workload cluster to one person.
//
// Does: has the cluster sign a client certificate for a name that the caller gives, in a group that was made for this certificate and
// that a ClusterRoleBinding gives rights. Without the binding the certificate is worth nothing: to delete it is to revoke it. Bindings
// whose certificates have ended are deleted at the next issue.
//
//	new key ─► CertificateSigningRequest ─► approved ─► signed ─► ClusterRoleBinding ─► kubeconfig
//
// The binding comes last: a command that is killed before leaves a request, which the cluster removes within a day, and no rights.
//
// Owns: in the workload cluster, the ClusterRoleBindings and CertificateSigningRequests named slipway-personal-*.
//
// Never: reads the key of an authority, uses or hands out the group system:masters, sends a private key anywhere.
//
// Read first: [Issue].
package personal
