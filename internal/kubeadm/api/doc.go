// Package kubeadmapi writes kubeadm's configuration files. It converts the kubeadm sections of a KubeadmConfig to
// YAML for the kubeadm of a given Kubernetes version: API version v1beta3 before Kubernetes 1.31, and v1beta4 from
// 1.31. The versions differ in the form of arguments, the location of timeouts and the set of fields. Fields that an
// older kubeadm does not support are omitted.
//
//	KubeadmConfig.spec.{clusterConfiguration,initConfiguration} ──► MarshalInit(facts)   ─┐
//	KubeadmConfig.spec.joinConfiguration                        ──► MarshalJoin(version) ─┴► kubeadm.k8s.io/v1beta{3,4}
//
// The package has its own structs for kubeadm.k8s.io/v1beta3 and v1beta4, because importing kubeadm would link a
// large part of Kubernetes. It also selects the feature gates of kubeadm for a Kubernetes version ([featureGates]).
// The bootstrap controller determines values such as endpoint, networks, discovery and taints. Start reading at
// [MarshalInit] and [MarshalJoin].
package api
