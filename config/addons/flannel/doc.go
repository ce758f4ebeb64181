// Package flannel has the manifests of the network add-on of local clusters.
//
// Does: returns the objects that give Pods of a cluster addresses and routes: flanneld with its host-gw backend (a
// route to each other node, nothing encapsulated; all nodes are on one Docker network) and beside it the program that
// writes a node's CNI configuration once the node's range is known.
//
// Owns: in a workload cluster, the DaemonSet, ConfigMap and ServiceAccount kube-system/flannel and the ClusterRole and
// ClusterRoleBinding slipway:flannel.
//
// Never: applies anything; chooses ranges. The image is built and preloaded by internal/nodeimage.
//
// Read first: manifests.yaml, images/node/cniconf.
package flannel
