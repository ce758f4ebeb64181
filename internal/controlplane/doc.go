// Package controlplane runs a Kubernetes control plane in this process. It composes certificates, etcd,
// kube-apiserver, kube-controller-manager and, for clusters with nodes, kube-scheduler. It starts the
// components in order, reports when they are ready, renews their certificates, and stops them in reverse
// order. Kubernetes has process-wide registries, therefore a process can only run one control plane. Etcd only
// listens on Unix sockets. The package writes the files in DIR/pki and DIR/etcd, the kubeconfig files of a
// management cluster, and the ClusterRoleBinding slipway:admins. Package internal/controlplane/supervisor
// starts and restarts the processes of workload clusters. `slipway up` calls [StartManagement]. The hidden command
// `slipway control-plane run` calls [RunWorkload].
//
// The package also limits what tenants of a management cluster may use: the concurrent lists and watches of each tenant
// (tenantlimits.go), and, with ValidatingAdmissionPolicies, the management node and the priorities of providers
// (tenantpolicies.go).
//
// There are two compositions, each with its own flags:
//
//	management cluster   StartManagement   managementflags.go   serves APIs; has nodes only on request (Nodes)
//	workload cluster     RunWorkload       workloadflags.go     in a separate process; if the Kubernetes version
//	                                                            differs from this build, all components but etcd run
//	                                                            in a child process (package childproc)
package controlplane
