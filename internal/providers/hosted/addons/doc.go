// Package addons puts into a fresh workload cluster what its nodes need.
//
// Does: by kubeadm's own phases, what `kubeadm init` would leave behind and `kubeadm join` looks for: cluster-info,
// the configurations of kubeadm and kubelet, the rights of bootstrap tokens, approval of node certificates; and
// the add-ons kube-proxy and CoreDNS.
//
// Owns: these objects in the workload cluster.
//
// Never: installs a network, which is a ClusterResourceSet's part; decides when to apply, which the caller does once
// per [Params.Hash].
//
// Read first: [Params], then [Apply].
package addons
