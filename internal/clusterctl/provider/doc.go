// Package provider is what a Cluster API provider is to the verbs: its type, its name, and where its releases are.
//
// Does: knows the types in the order of their installation, the label that marks the objects of a provider, and the
// providers that can be named without a configuration; reads references as people type them:
//
//	name                   the version that its repository calls the default
//	name:v1.2.3            this version
//	namespace/name:v1.2.3  this version, in this namespace
//
// Never: reads files or repositories.
//
// Read first: [Provider], then [ParseReference].
package provider
