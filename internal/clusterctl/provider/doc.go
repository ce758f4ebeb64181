// Package provider defines Cluster API providers for the commands of clusterctl: their types in installation order, the
// labels of their objects, and the built-in providers with the URLs of their releases. It reads no files or
// repositories. References to providers on the command line have these forms:
//
//	name                   the default version of the repository
//	name:v1.2.3            this version
//	namespace/name:v1.2.3  this version, in this namespace
package provider
