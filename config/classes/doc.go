// Package classes contains the ClusterClasses that are built into Slipway, with their templates:
//
//	kubeadm    a kubeadm control plane on machines, and nodes in containers of this host
//	local      a hosted control plane, and nodes in containers of this host
//	simulated  a simulated control plane and simulated nodes, for trying out many clusters
//
// A class that has been applied to a cluster belongs to its users and is not updated.
package classes
