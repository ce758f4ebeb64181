// Package management connects a verb to the management cluster.
//
// Does: the flags --kubeconfig, --kubeconfig-context, --data-dir and -n/--namespace; finds the kubeconfig they mean;
// makes the client; turns the errors of a cluster that does not answer into what to do about it.
//
// The kubeconfig is, in this order: the one --kubeconfig names; that of the data directory, if it exists or
// --data-dir was given; what KUBECONFIG or the home directory of kubectl say.
//
// Owns: that order.
//
// Never: starts a management cluster.
//
// Read first: [Flags], then [Flags.Connect].
package management
