// Package clusterclass is the ClusterClass controller, which prepares classes for the Clusters that use them. It makes
// each class an owner of its templates, so that they are moved and deleted with it. It merges the variables of the
// class with the variables that extensions return, and reports references that do not use the newest version of their
// kind. The generation is reported as observed once its variables are known, which Clusters wait for. The controller
// owns the status of ClusterClasses and the owner reference of the class on its templates. It never changes a Cluster
// or the spec of a class. To change it, start with [snapshot] and [decide], then read status.go. Package manager starts
// the controller with [Add].
//
// The inputs of the status:
//
//	spec.variables ─────────────► status.variables ──► VariablesReady
//	patches ─► DiscoverVariables ─┘
//	templateRefs ─► CRDs ──► RefVersionsUpToDate
package clusterclass
