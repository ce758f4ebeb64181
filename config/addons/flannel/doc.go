// Package flannel has the manifest of the network add-on of local clusters.
//
// Does: returns the objects that give Pods of a cluster addresses and routes: flanneld with its host-gw backend (a
// route to each other node, nothing encapsulated; all nodes are on one Docker network) and beside it the program that
// writes a node's CNI configuration once the node's range is known. What differs between clusters, the range of Pods
// and the address of the API server, is read in the cluster from the ConfigMap of kube-proxy.
//
// Owns: in a workload cluster, the DaemonSet and ServiceAccount kube-system/flannel and the ClusterRole and
// ClusterRoleBinding slipway:flannel.
//
// Never: applies anything; a ClusterResourceSet does. The images are built and preloaded by internal/nodeimage.
//
// Read first: manifests.yaml, images/node/cniconf.
package flannel
