// Package addons prepares a new workload cluster for its nodes. The HostedControlPlane controller calls it for hosted
// control planes, and package managementnode for the management cluster. It runs phases of kubeadm to create the
// objects that `kubeadm init` would create and `kubeadm join` needs: cluster-info, the kubeadm and kubelet
// configurations, RBAC for bootstrap tokens, and approval of node certificates. It also applies the add-ons kube-proxy
// and CoreDNS, and reads their state. It does not install a CNI plugin; a ClusterResourceSet does. The caller applies
// the objects once for each [Params.Hash]; a change of the objects that [Apply] creates must increase the constant
// revision.
package addons
