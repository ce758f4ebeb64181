// Package hosted implements the HostedControlPlane controller, a control plane provider that follows the
// control plane contract of Cluster API. It creates the CAs and the kubeconfig of a workload cluster as
// Secrets, runs the control plane through a backend, by default as one process on this machine, and applies
// the objects that `kubeadm join` and Pods need to the workload cluster. A change of the version restarts the
// process in place.
//
//	Cluster: infrastructure provisioned, endpoint known
//	   └─► Secrets <cluster>-{ca,etcd,proxy,sa}, <cluster>-kubeconfig, <cluster>-encryption if requested
//	          └─► process (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)
//	                 └─► cluster-info, kubeadm-config, kubelet-config, RBAC, kube-proxy, CoreDNS ─► initialized
//
// Secrets that a user supplies are not changed. Running and restarting control planes is left to the backend
// (package backend), which the controller only distinguishes by its static properties. Start at [snapshot],
// [decide] and conditions.go.
package hosted
