// Package hosted is the HostedControlPlane controller.
//
// Does: gives a workload cluster a control plane that a backend runs, by default as one process on this machine: its
// authorities and kubeconfig as Secrets, the process itself, and in the workload cluster what `kubeadm join` and pods need.
// Another version in the spec restarts the process in place. Follows the control plane contract.
//
//	Cluster: infrastructure provisioned, endpoint known
//	   └─► Secrets <cluster>-{ca,etcd,proxy,sa}, <cluster>-kubeconfig, <cluster>-encryption where it is asked for
//	          └─► process (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)
//	                 └─► cluster-info, kubeadm-config, kubelet-config, RBAC, kube-proxy, CoreDNS ─► initialized
//
// Owns: those Secrets where no user supplied them, the process and its data, the add-ons, and the status of
// HostedControlPlanes.
//
// Never: runs a control plane itself (package backend), restarts one that died (its backend), knows which backend it has
// but by facts, or knows what network the endpoint is in.
//
// Read first: [Snapshot], [Decide], then conditions.go.
package hosted
