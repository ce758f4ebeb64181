// Package kubeconfig provides access to a workload cluster. [ReadKubeconfig] reads the administrator's kubeconfig from
// the Secret `<cluster>-kubeconfig` of the control plane provider; if the Secret does not exist, the error explains
// why. [Issue] issues personal credentials instead: the cluster signs a client certificate for a given user name, in a
// group that is unique for this certificate and to which a ClusterRoleBinding grants permissions. Deleting the binding
// revokes the certificate. Bindings of expired certificates are deleted when the next certificate is issued.
// [RequestFrom] requests such credentials from the manager of the management cluster, for users without the
// administrator's kubeconfig. In the workload cluster the package owns the ClusterRoleBindings and
// CertificateSigningRequests named slipway-personal-*. It never reads the key of a CA, does not use or issue the group
// system:masters, and sends no private keys. `slipway get kubeconfig` uses this package; `slipway hosts reboot` and the
// rotation of encryption keys read the administrator's kubeconfig.
//
// The binding is created last: a command that is killed before leaves only a request, which the cluster deletes within
// a day, and no permissions. Credentials are issued in this order:
//
//	new key ─► CertificateSigningRequest ─► approved ─► signed ─► ClusterRoleBinding ─► kubeconfig
package kubeconfig
