// Package kubeconfig is the verb "get kubeconfig".
//
// Does: prints the kubeconfig of a workload cluster, or writes it to a file, or adds it to the one that kubectl reads; with --user, the
// credentials in it are those of one person (package personal).
//
// Never: changes the kubeconfig of a management cluster; verbs find that cluster by it.
//
// Read first: Command, then merge.
package kubeconfig
