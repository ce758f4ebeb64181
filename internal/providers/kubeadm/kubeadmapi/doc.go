// Package kubeadmapi writes kubeadm's configuration files.
//
// Does: turns the kubeadm sections of a KubeadmConfig into the YAML that the kubeadm of a given Kubernetes
// version reads: API version v1beta3 before Kubernetes 1.31, v1beta4 from there on. The two differ
// in the shape of arguments, in where timeouts live, and in what they know at all; what an older kubeadm
// does not know is left out.
//
//	KubeadmConfig.spec.{clusterConfiguration,initConfiguration} ──► MarshalInit(facts)   ─┐
//	KubeadmConfig.spec.joinConfiguration                        ──► MarshalJoin(version) ─┴► kubeadm.k8s.io/v1beta{3,4}
//
// Owns: the wire structs of kubeadm.k8s.io/v1beta3 and v1beta4, and which of kubeadm's feature gates a version of
// Kubernetes gets ([FeatureGates]).
//
// Never: finds out values (endpoint, networks, discovery and taints are decided by the bootstrap controller), and
// never imports kubeadm itself, which would link half of Kubernetes.
//
// Read first: [MarshalInit], [MarshalJoin].
package kubeadmapi
