// Package management connects a command to the management cluster. It provides the flags --kubeconfig,
// --kubeconfig-context, --data-dir and -n/--namespace ([Flags]), finds the kubeconfig that they select, creates the
// client ([Flags.Connect]), and adds remedies to the errors of an unreachable cluster ([Connection.Explain]). It does
// not start a management cluster. It finds kinds by the names that kubectl accepts ([Kinds]).
//
// The kubeconfig is selected in this order:
//
//	the --kubeconfig flag
//	the kubeconfig of the data directory, if it exists or --data-dir is set
//	KUBECONFIG, or the default kubeconfig of kubectl in the home directory
//
// If the program is called as clusterctl, KUBECONFIG takes precedence over the default data directory.
package management
