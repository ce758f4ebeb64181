// Package api writes and changes kubeadm's configuration files. It converts the kubeadm sections of a KubeadmConfig to
// YAML for the kubeadm of a given Kubernetes version ([MarshalInit], [MarshalJoin]), for the bootstrap data of a
// Machine (package bootstrap/render). It also changes the ClusterConfiguration that kubeadm has stored in its cluster
// to another version or configuration ([StoredConfiguration]), for the KubeadmControlPlane controller (package
// controlplane/addons). The API version is v1beta3 before Kubernetes 1.31, and v1beta4 from 1.31. The versions differ
// in the form of arguments, the location of timeouts and the set of fields, and fields that an older kubeadm does not
// support are omitted. The package has its own structs (types.go), because importing kubeadm would link a large part of
// Kubernetes. Values such as endpoint, networks, discovery and taints are determined by the callers.
//
//	spec.{clusterConfiguration,initConfiguration} ─► MarshalInit ────────────────────────┐
//	spec.joinConfiguration                        ─► MarshalJoin ────────────────────────┼► kubeadm.k8s.io/v1beta{3,4}
//	ConfigMap kubeadm-config                      ─► ParseStored ─► StoredConfiguration ─┘
//
// The YAML functions ([YAMLString], [YAMLMap], [YAMLMarshal]) write YAML that all parsers read identically: strings are
// quoted if YAML 1.1 and 1.2 interpret them differently, or if a parser would trim, fold or reject them. Literal blocks
// are used where they are safe and more readable. The tests verify the output with several parsers.
package api
