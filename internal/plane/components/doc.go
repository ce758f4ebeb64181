// Package components runs kube-apiserver, kube-controller-manager and
// kube-scheduler of one workload cluster in this process.
//
// Does: configures the three from their flags, starts the API server on a given
// listener, then the others when it is ready, and stops them in the opposite
// order.
//
// Owns: the ClusterRoleBinding of administrators in the cluster.
//
// Never: chooses flags, runs etcd, writes files. It is compiled into programs
// of several Kubernetes versions (internal/plane/program): what it imports of
// Kubernetes must have the same shape in all of them.
//
// Read first: New, Components.Run.
package components
