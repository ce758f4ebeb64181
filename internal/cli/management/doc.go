// Package management connects a command to the management cluster. It provides the flags --kubeconfig,
// --kubeconfig-context, --data-dir and -n/--namespace, finds the kubeconfig that they select, creates the client, and
// adds remedies to the errors of an unreachable cluster. It does not start a management cluster.
//
// The kubeconfig is, in this order: the --kubeconfig flag; the kubeconfig of the data directory, if it exists or
// --data-dir is set; KUBECONFIG or the default kubeconfig of kubectl in the home directory.
//
// Start with [Flags], then [Flags.Connect].
package management
