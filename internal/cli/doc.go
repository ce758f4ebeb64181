// Package cli implements the slipway command line. It assembles the commands from the packages below it, runs one of
// them ([Run]), and maps its error to a message, a hint and an exit code. Only the commands without logic of their own
// are implemented here: the groups such as "get", "version" and "completion". To add a command, write it in the package
// of its subject and list it in cli.go.
//
// The program behaves as clusterctl if it is called by that name: it then has only the commands of clusterctl, with
// their flags ([newClusterctlRoot]). For an unknown command, it runs the program in PATH whose name starts with the
// name of this program: "slipway foo bar" runs slipway-foo-bar, or else slipway-foo with the argument bar. Plugins of
// clusterctl (clusterctl-foo) are found as well. Existing commands take precedence.
//
// The subjects are:
//
//	cluster     create, delete, describe, get, upgrade, wait, rollout, rotate, logs, kubectl: workload clusters
//	data        backup, restore, move, snapshots, recover: the data of management and workload clusters
//	provider    init, upgrade plan and apply, delete, generate, config, convert: the provider commands of clusterctl
//	hosts       hosts, bundle: machines that are reached over SSH, and the bundles for them
//	extension   extension: tools for authors of Runtime Extensions
//	image       image, versions: node images and Kubernetes versions of this host
//	plan        plan, explain, ui: effects of a change, the last plans of the controllers, and causes of problems
//	up          up, down, status: the management cluster of this host
//	manager     manager: the controllers against any Kubernetes cluster
//	hidden      the processes that other commands start
//	management  the connection to the management cluster
//	term        streams, output formats, confirmation and arguments
package cli
