// Package cluster implements the create cluster command. It finds the class (package class), generates the manifest of
// a cluster (package manifest), prints it (--dry-run) or applies it (package creation), and waits until all nodes are
// Ready (package progress). The command does nothing that `kubectl apply` of the printed manifest would not do. Start
// with [CreateClusterCommand], then run.go.
package cluster
