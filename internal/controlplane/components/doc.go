// Package components runs kube-apiserver, kube-controller-manager and kube-scheduler of one workload cluster
// in this process. It configures the three from their flags, starts the API server on a given listener,
// starts the others when it is ready, and stops them in reverse order. It also creates the ClusterRoleBinding
// of administrators in the cluster. Flags, etcd and files are the caller's responsibility. The package is
// compiled into programs of several Kubernetes versions (internal/controlplane/program), therefore the parts of
// Kubernetes that it imports must have the same API in all of them. Start at New and Components.Run.
package components
