// Package kubeconfig is the verb "get kubeconfig".
//
// Does: prints the kubeconfig of a workload cluster.
//
// Never: writes files; the shell does that.
//
// Read first: Command.
package kubeconfig
