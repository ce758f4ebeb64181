// Package clusterclass is the ClusterClass controller: it prepares classes for the Clusters that use them.
//
// Does: makes each class an owner of its templates, so that they move and are deleted with it; merges the variables that the class
// defines with those that extensions define, which it asks for them; says which references do not use the newest version of their
// kind.
//
//	spec.variables ─────────────► status.variables ──► VariablesReady
//	patches ─► DiscoverVariables ─┘
//	templateRefs ─► CRDs ──► RefVersionsUpToDate
//
// The generation is observed once its variables are known: Clusters wait for that.
//
// Owns: of ClusterClasses the status; of their templates the owner reference of the class.
//
// Never: changes a Cluster, or what a class says.
//
// Read first: [Snapshot], [Decide], then status.go.
package clusterclass
