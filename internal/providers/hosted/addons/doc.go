// Package addons puts into a fresh workload cluster what its nodes need.
//
// Does: by kubeadm's own phases, what `kubeadm init` would leave behind and `kubeadm join` looks for: cluster-info,
// the configurations of kubeadm and kubelet, the rights of bootstrap tokens, approval of node certificates; the
// add-ons kube-proxy and CoreDNS; and flannel as network.
//
// Owns: these objects in the workload cluster.
//
// Never: decides when; the caller applies once per [Params.Hash].
//
// Read first: [Params], then [Apply].
package addons
