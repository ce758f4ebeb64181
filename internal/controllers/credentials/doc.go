// Package credentials issues client certificates for workload clusters to users who may not read the kubeconfig
// Secrets of the management cluster. It reconciles CertificateSigningRequests of the management cluster with the
// signer clusters.slipway.dev/<namespace>.<name>. It approves a request whose creator has the verb "connect" on that
// Cluster, binds the requested ClusterRole in the workload cluster to a group that only this certificate contains, and
// signs the certificate with the key in the Secret <name>-ca. A request that violates a rule is denied with a message
// that names the rule. The controller owns the conditions and the certificate of these requests, their annotation
// slipway.dev/cluster, and the ClusterRoleBindings slipway-personal-* in workload clusters. It never issues a
// certificate for a user or group that Kubernetes reserves (system:, kubeadm:), or one that is valid for more than a
// week. To change it, start with [decide]. Package manager starts the controller with [Add]; package operate/kubeconfig
// creates its requests.
//
// The steps of a request:
//
//	CertificateSigningRequest ─► rules ─► SubjectAccessReview ─► Approved ─► ClusterRoleBinding ─► certificate
//	                               └────────────┴─► Denied
package credentials
