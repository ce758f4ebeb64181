// Package selection turns the names of providers into what can be installed.
//
// Does: opens the repository of a provider that the configuration file, or the built-in list, names; chooses the version; reads
// its contract and its components; says which providers a management cluster has.
//
// Never: writes; decides whether providers fit together (package installation does).
//
// Read first: [Loader], then [ReadCluster].
package selection
