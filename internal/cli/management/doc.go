// Package management connects a command to the management cluster. It provides the flags --kubeconfig,
// --kubeconfig-context, --data-dir and -n/--namespace ([Flags]), finds the kubeconfig that they select, creates the
// client ([Flags.Connect]), and adds remedies to errors of the API ([Connection.Explain]). It does not start a
// management cluster, but detects that no manager responds ([Connection.ManagerProblem]). It finds kinds by the names
// that kubectl accepts ([Kinds]), and completes the names of Clusters ([Flags.CompleteCluster]).
//
// The kubeconfig is selected in this order:
//
//	the --kubeconfig flag
//	the kubeconfig of the data directory, if it exists
//	with --data-dir: the kubeconfig of the "slipway manager" that uses the directory, else an error
//	KUBECONFIG, or the default kubeconfig of kubectl in the home directory
//
// If the program is called as clusterctl, KUBECONFIG takes precedence over the default data directory.
package management
