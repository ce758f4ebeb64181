// Package plane runs a Kubernetes control plane as a component of this process.
//
// Does: composes certificates, etcd, kube-apiserver, kube-controller-manager
// and, for clusters with nodes, kube-scheduler; starts them in order, tells
// when they are ready, keeps their certificates fresh, and stops them in order.
// There are two compositions: the management cluster (StartManagement), which
// serves APIs and has nodes only where asked to (Nodes), and a workload cluster's control plane
// (RunWorkload), which is a process of its own. Etcd listens on unix sockets
// only.
//
// Owns: the flags of the components, DIR/pki, DIR/etcd, the two kubeconfig
// files of a management cluster, and the ClusterRoleBinding slipway:admins.
//
// Never: runs two control planes in one process (Kubernetes keeps process-wide
// registries), supervises processes (internal/plane/process), knows Cluster API.
//
// Read first: StartManagement, RunWorkload, managementFlags, workloadFlags.
package plane
