// Package provider implements the commands of clusterctl for providers. A command that changes providers reads the
// configuration file of clusterctl and the installed providers, computes a plan, and executes or prints it (--dry-run).
// Interrupted at any point, the same command completes the plan. The providers that "slipway up" runs are built in, and
// are not installed again. The files are named after the commands; flags.go contains the flags that select providers
// ([providerFlags]), and the flags of commands that install them ([installFlags]).
//
// The commands, and the packages that do their work:
//
//	init                 clusterctl/install: installs providers
//	init list-images     clusterctl/install: lists the images that init would need, without a management cluster as well
//	upgrade plan         clusterctl/providerupgrade: lists the versions to which providers can be upgraded
//	upgrade apply        clusterctl/providerupgrade: upgrades providers, and rolls back if they do not become available
//	delete               clusterctl/install: deletes providers, if the command has flags
//	config repositories  clusterctl/repository: lists the repositories of all providers, without accessing them
//	generate provider    clusterctl/repository: prints the components of a provider
//	generate yaml        clusterctl/repository: replaces the variables of a text
//	convert              clusterctl/template: converts a manifest to the latest version of the Cluster API kinds
//	provider lint        clusterctl/lint: checks releases against the contract of clusterctl
//
// The package also provides --config and --print-config of the commands that run controllers ([PolicyFlags]).
// They read the operator's configuration (package policy), not the configuration file of clusterctl.
package provider
