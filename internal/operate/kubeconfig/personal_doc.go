// Package personal issues personal credentials for a workload cluster. The cluster signs a client certificate for a
// given user name, in a group that is unique for this certificate and to which a ClusterRoleBinding grants permissions
// ([Issue]). Deleting the binding revokes the certificate. Bindings of expired certificates are deleted when the next
// certificate is issued.
//
//	new key ─► CertificateSigningRequest ─► approved ─► signed ─► ClusterRoleBinding ─► kubeconfig
//
// The binding is created last: a command that is killed before leaves only a request, which the cluster deletes within
// a day, and no permissions. In the workload cluster the package owns the ClusterRoleBindings and
// CertificateSigningRequests named slipway-personal-*. It never reads the key of a CA, does not use or issue the group
// system:masters, and sends no private keys.
package kubeconfig
