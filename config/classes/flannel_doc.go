// Package flannel contains the manifest of the network add-on for local clusters. Its objects give the Pods of a
// cluster addresses and routes: flanneld with its host-gw backend (a route to each other node without encapsulation,
// because all nodes are on one Docker network), and a program that writes a node's CNI configuration once the node's
// Pod CIDR is known (images/node/cniconf). The add-on reads the properties of a cluster, the Pod CIDR and the address
// of the API server, from the ConfigMap of kube-proxy. A ClusterResourceSet applies it; internal/nodeimage builds and
// preloads the images.
package classes
