// Package controlplane keeps the control plane Machines of a KubeadmControlPlane.
//
// Does: creates certificates and the kubeconfig, then the first Machine, whose KubeadmConfig initializes the cluster, then one after the
// other the Machines that join. Replaces outdated Machines (package rollout says which) and unhealthy ones (package remediation), and
// deletes surplus ones; removes the etcd member of a Machine while its kubelet still runs. Applies to Machines what follows in place.
// What kubeadm left in the workload cluster follows (package upgrade): its configuration and roles before a Machine joins, kube-proxy and
// CoreDNS once all Machines are up to date.
//
//	                      ┌─ certificates, kubeconfig
//	KubeadmControlPlane ──┤
//	Machines              ├─ one Machine leaves: move the leader, remove its member, remove the hook
//	KubeadmConfigs        ├─ members of etcd without a Machine: remove
//	infrastructure        ├─ remediate ──────────────┐
//	workload cluster      ├─ roll out ─► preflight ──┼─► create or delete one Machine
//	members of etcd       └─ scale ────► preflight ──┘
//
// At most one Machine is created or deleted at a time: the next waits until all components of the others are healthy. Nothing that
// the controller does takes etcd below its quorum (package quorum).
//
// Owns: of KubeadmControlPlanes: finalizer, the annotation remediation-in-progress, and the status. Control plane Machines that it creates
// or adopts, with their KubeadmConfigs and infrastructure machines: under the field manager capi-kubeadmcontrolplane their owner,
// labels, annotations and spec; the conditions UpToDate, OwnerRemediated (with reasons of its own) and those of package health. The
// Secrets <cluster>-{ca,etcd,proxy,sa,kubeconfig}. The membership of etcd.
//
// Never: renders bootstrap data, or holds the lock of the first node (package bootstrap does); declares a Machine unhealthy (a
// MachineHealthCheck does); takes a deleted Machine down (the Machine controller does); touches an external etcd.
//
// Read first: [Snapshot], [Decide], then scale.go.
package controlplane
