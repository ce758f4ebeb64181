// Package workload is what a KubeadmControlPlane reads of its workload cluster.
//
// Does: reads the Nodes, the static Pods of the control plane, kubeadm's configuration and the members of etcd at once
// ([Reader.Read]), each with why it could not be read.
//
// Never: decides whether something is healthy (package health does), or changes what kubeadm left in the cluster (package upgrade does).
//
// Read first: [State], then [Reader.Read].
package workload
