// Package bootstrap implements the KubeadmConfig controller. For every KubeadmConfig that is owned by a Machine or
// MachinePool, it writes a Secret with the bootstrap data that turns a machine into a node: files, users, disks, and
// the commands around `kubeadm init` or `kubeadm join`. It ensures that only one Machine initializes a control plane,
// and creates the certificates of clusters without a control plane object. It manages the bootstrap token: the token
// is extended until the Machine has a Node, rotated for a MachinePool, and deleted with its owner.
//
//	owner? ► infrastructure? ─┬► control plane? ► CA, content ► choose token ► token Secret ─┬► data Secret ► status
//	                          │                                  (spec)         (workload)   │
//	                          └► first control plane Machine: lock ► certificates, content ──┘
//
//	data exists, Machine:     token missing or aging ► create or extend it, until there is a Node
//	data exists, MachinePool: token past half its TTL ► choose another ► token Secret ► data Secret
//
// Every step writes its result to an API before the next one starts. The token is first written to the spec of the
// KubeadmConfig, so that a crash at any point neither loses a token nor leaves one behind.
//
// The controller writes the status of a KubeadmConfig, spec.joinConfiguration.discovery.bootstrapToken.token unless
// the user has set it, the data Secret of the same name (keys value and format) and the ConfigMap <cluster>-lock. For
// a Cluster without a controlPlaneRef it also writes the Secrets <cluster>-{ca,etcd,proxy,sa}. In workload clusters
// it writes the Secrets kube-system/bootstrap-token-<id> with the label [discovery.ownerLabel]. It never replaces a
// certificate, and it regenerates the data of a Machine only if the Secret was deleted before the Machine joined.
// Start reading at [decide].
package bootstrap
