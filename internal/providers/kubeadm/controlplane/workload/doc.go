// Package workload is what a KubeadmControlPlane reads of its workload cluster, and writes to it.
//
// Does: reads the Nodes, the static Pods of the control plane, kubeadm's configuration and the members of etcd at once
// ([Reader.Read]), each with why it could not be read. Before Machines of another configuration join, brings what kubeadm reads in the
// cluster up to date ([Upgrade]): its ConfigMap and the roles that a joining node needs; once all Machines are up to date, kube-proxy and
// CoreDNS ([Addons]).
//
// Owns, in workload clusters: the ClusterConfiguration in ConfigMap kubeadm-config, the roles and bindings that kubeadm's bootstrap
// needs, the image of DaemonSet kube-proxy, and the image and Corefile of CoreDNS.
//
// Never: decides whether something is healthy (package health does), or when to write.
//
// Read first: [State], then [Reader.Read].
package workload
