// Package controlplane implements the KubeadmControlPlane controller. It creates the certificates and the kubeconfig,
// a first Machine whose kubeadmConfig initializes the cluster, and then the joining Machines one after the other. It
// replaces outdated Machines (see package rollout) and unhealthy Machines (see package remediation), and deletes
// surplus ones. The etcd member of a deleted Machine is removed while its kubelet still runs. Changes that do not
// require a replacement are propagated to Machines in place. Objects that kubeadm created in the workload cluster are
// updated by package upgrade: its configuration and roles before a Machine joins, and kube-proxy and CoreDNS once all
// Machines are up to date.
//
//	                      ┌─ certificates, kubeconfig
//	KubeadmControlPlane ──┤
//	Machines              ├─ a Machine is being deleted: transfer leadership, remove its member, remove the hook
//	KubeadmConfigs        ├─ etcd members without a Machine: remove
//	infrastructure        ├─ remediate ──────────────┐
//	workload cluster      ├─ roll out ─► preflight ──┼─► create or delete one Machine
//	etcd members          └─ scale ────► preflight ──┘
//
// At most one Machine is created or deleted at a time. The next one waits until all components of the other Machines
// are healthy. No action of the controller lowers etcd below its quorum (see package quorum).
//
// The controller writes the finalizer, the annotation remediation-in-progress and the status of a
// KubeadmControlPlane. For the control plane Machines that it creates or adopts, with their KubeadmConfigs and
// infrastructure machines, the field manager capi-kubeadmcontrolplane owns the owner reference, labels, annotations
// and spec. On Machines it sets the conditions UpToDate, OwnerRemediated and the conditions of package health. It
// also manages the Secrets <cluster>-{ca,etcd,proxy,sa,kubeconfig} and the membership of etcd. An external etcd is
// never changed.
//
// Bootstrap data and the lock of the first node belong to package bootstrap, Machines are declared unhealthy by a
// MachineHealthCheck, and the Machine controller deletes the infrastructure. Start reading at [snapshot], [decide]
// and scale.go.
package controlplane
