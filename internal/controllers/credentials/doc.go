// Package credentials issues client certificates of workload clusters to people who may not read the kubeconfig Secrets of the
// management cluster.
//
// Does: reconciles CertificateSigningRequests of the management cluster whose signer is clusters.slipway.dev/<namespace>.<name>. It
// approves a request whose creator has the verb "connect" on that Cluster, binds the requested ClusterRole in the workload cluster to
// a group that only this certificate has, and signs with the key in the Secret <name>-ca. A request that breaks a rule is denied with
// the rule.
//
//	CertificateSigningRequest ─► rules ─► SubjectAccessReview ─► Approved ─► ClusterRoleBinding ─► certificate
//	                               └────────────┴─► Denied
//
// Owns: the conditions and the certificate of these requests, their annotation slipway.dev/cluster, and in workload clusters the
// ClusterRoleBindings slipway-personal-*.
//
// Never: issues a certificate for a user or group of Kubernetes' own (system:, kubeadm:), or one that lives longer than a week.
//
// Read first: [Decide].
package credentials
