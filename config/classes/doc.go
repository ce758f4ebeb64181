// Package classes contains the manifests that are built into Slipway: the ClusterClasses with their templates
// ([Objects]), and their network add-on ([FlannelManifest]). A class that was applied to a management cluster belongs
// to its users; `slipway create cluster` does not update it. `slipway create cluster`, `slipway generate cluster` and
// package release use it.
//
// The classes:
//
//	kubeadm      a kubeadm control plane on machines, and nodes in containers of this host
//	local        a hosted control plane, and nodes in containers of this host
//	simulated    a simulated control plane and simulated nodes, for trying out many clusters
//	ssh          a hosted control plane, and nodes on SSHHosts
//	ssh-kubeadm  a kubeadm control plane and nodes on SSHHosts
//
// The objects of the network add-on give the Pods of a cluster addresses and routes: flanneld with its host-gw backend
// (a route to every other node without encapsulation, because all nodes are on one Docker network), and a program that
// writes a node's CNI configuration once the node's Pod CIDR is known (images/node/cniconf). SSHHosts may be in
// different subnets, so their nodes have the vxlan backend ([FlannelVXLANManifest]). The add-on reads the properties of
// a cluster, the Pod CIDR and the address of the API server, from the ConfigMap of kube-proxy. A ClusterResourceSet
// applies it; package nodeimage builds and preloads the images.
package classes
