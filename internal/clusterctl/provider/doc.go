// Package provider defines Cluster API providers for the commands of clusterctl: their types in installation order, the
// labels of their objects, and the built-in providers with the URLs of their releases. It also defines the inventory of
// installed providers: one object of kind Provider for each, in the namespace of the provider ([ReadInventory]). An
// unfinished installation is marked, so that the next `slipway init` or `delete` can complete or delete it. The package
// reads no files or repositories and writes nothing. The commands for providers, package template and package
// operate/backup read the inventory with it. References to providers on the command line have these forms:
//
//	name                   the default version of the repository
//	name:v1.2.3            this version
//	namespace/name:v1.2.3  this version, in this namespace
package provider
