// Package hosted implements the HostedControlPlane controller, a control plane provider that follows the control plane
// contract of Cluster API. It creates the CAs and the kubeconfig of a workload cluster as Secrets, runs the control
// plane through a backend, by default as one process on this host, and applies the objects that `kubeadm join` and Pods
// need to the workload cluster. A change of the version restarts the process in place. Secrets that a user supplies are
// not changed, and Secrets that existing data or nodes depend on are never recreated. Package backend defines how
// control planes are run; the controller distinguishes backends only by their [backend.Capabilities]. To change a
// decision, start at decide in decide.go: observe.go reads its input, act.go executes its actions, and status.go and
// conditions.go compute the status. Package manager adds the controller; `slipway move` and
// `slipway restore controlplane` request restores with [RestoreRequest].
//
// The objects of a control plane are created in this order:
//
//	Cluster: infrastructure provisioned, endpoint known
//	   └─► Secrets <cluster>-{ca,etcd,proxy,sa}, <cluster>-kubeconfig, <cluster>-encryption if requested
//	          └─► process (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)
//	                 └─► cluster-info, kubeadm-config, kubelet-config, RBAC, kube-proxy, CoreDNS ─► initialized
//
// Two annotations interrupt normal operation. Both are parsed strictly, because tenants can write them:
//
//	quiesce   stops the process, or runs only etcd, or all components on loopback only (quiesce.go)
//	restore   fetches a snapshot of an EtcdSnapshotPolicy in the same namespace into the directory of the control
//	          plane (restore_stage.go); the next process restores it before its etcd starts (package processconfig)
package hosted
