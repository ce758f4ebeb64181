// Package workload reads the state of the workload cluster of a KubeadmControlPlane. [Reader.Read] reads the Nodes,
// the static Pods of the control plane, kubeadm's configuration and the etcd members together. For each part that
// cannot be read, the [State] contains the reason. Package health evaluates the state.
package workload
