// Package kubeconfig hands out the kubeconfig of a workload cluster.
//
// Does: reads the Secret `<cluster>-kubeconfig` that the control plane provider keeps, and when it
// is not there says what it waits for.
//
// Never: makes or changes a kubeconfig.
//
// Read first: [Read].
package kubeconfig
