// Package kubeconfig implements the get kubeconfig command. It prints the kubeconfig of a workload cluster, writes it
// to a file, or merges it into the kubeconfig of kubectl. With --user, the kubeconfig contains credentials for one user
// (package personal). The kubeconfig of a management cluster is never modified, because commands use it to find the
// cluster. Start with [Command], then merge.
package cluster
