// Package bootstrap implements the KubeadmConfig controller, the bootstrap provider of Cluster API for kubeadm. For
// every KubeadmConfig that is owned by a Machine or MachinePool, it writes a Secret with the bootstrap data that turns
// a machine into a node. Package render computes the data: files, users, disks, and the commands around `kubeadm init`
// or `kubeadm join`. The controller ensures that only one Machine initializes a control plane, creates the certificates
// of clusters without a control plane object, and manages the bootstrap token with which a machine joins. Every step
// writes its result to an API before the next one starts. In particular, the token is first written to the spec of the
// KubeadmConfig, so that a crash at any point neither loses a token nor leaves one behind. Start reading at [decide].
// Package manager adds the controller, and package managementnode creates its own bootstrap token with [TokenSecret].
//
// The first missing part of the bootstrap data determines the step:
//
//	owner? ► infrastructure? ─┬► control plane? ► CA, content ► choose token ► token Secret ─┬► data Secret ► status
//	                          │                                  (spec)         (workload)   │
//	                          └► first control plane Machine: lock ► certificates, content ──┘
//
// Once the data exists, the token of a Machine is extended until the Machine has a Node, and the token of a MachinePool
// is replaced, so that old bootstrap data does not remain valid. Tokens are deleted with their owner.
//
//	remaining lifetime of a token   TTL ── 5/6 ───────── 1/2 ───────── 0
//	Machine without a Node          wait │ extend to TTL …
//	MachinePool                     wait               │ choose another ► token Secret ► data Secret
//
// The lock that allows a single Machine of a Cluster to initialize the control plane is the ConfigMap <cluster>-lock,
// with the key lock-information as in other implementations of Cluster API. Taking the lock means creating the
// ConfigMap, which only succeeds once. The Machine named in it holds the lock across crashes.
//
//	taken ─► control plane initialized │ Machine deleted ─► ConfigMap deleted
//
// The controller writes the following objects. It never replaces a certificate, and it regenerates the data of a
// Machine only if the Secret was deleted before the Machine joined.
//
//	KubeadmConfig                                 status, and the token in the spec unless the user has set it
//	Secret named as the KubeadmConfig             bootstrap data (keys value and format)
//	ConfigMap <cluster>-lock                      the Machine that initializes the control plane
//	Secrets <cluster>-{ca,etcd,proxy,sa}          only if the Cluster has no controlPlaneRef
//	Secrets kube-system/bootstrap-token-<id>      in the workload cluster, labelled with their KubeadmConfig
package bootstrap
