// Package bootstrap is the controller of KubeadmConfigs.
//
// Does: writes, for every KubeadmConfig that a Machine or MachinePool owns, the Secret with the data that
// turns a machine into a node: files, users, disks and commands around `kubeadm init` or `kubeadm join`. It lets one
// Machine initialize a control plane, and creates the certificates of a control plane without a control plane object. It
// chooses the bootstrap token, keeps it alive until the Machine has a Node, replaces it regularly for a MachinePool, and
// deletes it when the owner goes.
//
//	owner? ► infrastructure? ─┬► control plane? ► CA, content ► choose token ► token Secret ─┬► data Secret ► status
//	                          │                                  (spec)         (workload)   │
//	                          └► first of the control plane: lock ► certificates, content ───┘
//
//	made, Machine:     token missing or old ► create or extend it, until there is a Node
//	made, MachinePool: token past half its life ► choose another ► as above
//
// Every step leaves its result in an API before the next one begins, the token first in the spec of the
// KubeadmConfig, so that a crash at any point neither loses a token nor leaves one behind.
//
// Owns: of a KubeadmConfig spec.joinConfiguration.discovery.bootstrapToken.token where the user left it open,
// and its status; the Secret of the same name (keys value and format); the ConfigMap <cluster>-lock; of a Cluster
// without a controlPlaneRef the Secrets <cluster>-{ca,etcd,proxy,sa}; in workload clusters the Secrets
// kube-system/bootstrap-token-<id> with the label [discovery.OwnerLabel].
//
// Never: makes data again for a Machine that has it, reads what a machine did with it, or replaces a certificate.
//
// Read first: [Decide].
package bootstrap
