// Package secrets manages the certificate authorities and the admin kubeconfig of a workload cluster, which are stored
// as the Secrets <cluster>-{ca,etcd,proxy,sa,apiserver-etcd-client,kubeconfig}. It lists the Secrets that a control
// plane requires ([Required]), reads them ([Read]), finds Secrets that must be created, must be provided by the user or
// are invalid ([Evaluate]), generates the content of new Secrets ([Generate]) and issues and renews the kubeconfig
// ([Issue]). Secrets that a user created before the cluster are used unchanged, and a CA without its private key can be
// used for everything except signing. The package writes nothing. The controllers of KubeadmControlPlanes,
// KubeadmConfigs and HostedControlPlanes write the Secrets and decide whether a CA may still be created, because the
// nodes of an initialized cluster do not trust a CA that is generated later.
//
//	Required(clusterConfiguration) ─► Read ─► Evaluate ─► create │ wait for the user │ complete
//	                                             ┌───────────────────────────────────────┘
//	                                             └─► ParseKubeconfig ─► ReissueReason ─► Issue
package secrets
