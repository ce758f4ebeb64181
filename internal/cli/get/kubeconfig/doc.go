// Package kubeconfig is the verb "get kubeconfig".
//
// Does: prints the kubeconfig of a workload cluster, or with --merge adds it to the file that kubectl reads.
//
// Never: changes the kubeconfig of a management cluster; verbs find that cluster by it.
//
// Read first: Command, then merge.
package kubeconfig
