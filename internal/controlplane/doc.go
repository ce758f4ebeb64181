// Package plane runs a Kubernetes control plane in this process. It composes certificates, etcd,
// kube-apiserver, kube-controller-manager and, for clusters with nodes, kube-scheduler. It starts the
// components in order, reports when they are ready, renews their certificates, and stops them in reverse
// order. There are two compositions: the management cluster (StartManagement), which serves APIs and only has
// nodes on request (Nodes), and the control plane of a workload cluster (RunWorkload), which runs in a
// separate process. Kubernetes has process-wide registries, therefore a process can only run one control
// plane. Etcd only listens on Unix sockets.
//
// The package owns the flags of the components, DIR/pki, DIR/etcd, the kubeconfig files of a management
// cluster, and the ClusterRoleBinding slipway:admins. Package internal/controlplane/supervisor supervises the
// processes. Start at StartManagement, RunWorkload, managementFlags and workloadFlags.
package controlplane
