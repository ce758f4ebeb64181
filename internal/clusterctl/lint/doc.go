// Package lint checks releases of providers against clusterctl's contract.
//
// Does: finds the releases below a folder, reads each as clusterctl does, and checks every rule of a table: which files there
// are, metadata, variables, namespace, labels, Deployments, certificates, CRDs by the contract of their role (package
// sdk/contract), the rights that Cluster API's core gets, Pod security, cluster templates and ClusterClasses.
//
// Findings of mandatory rules make a release unusable, or unusable with some of clusterctl's verbs; the others are advice.
//
// Owns: the names of the rules.
//
// Never: talks to a cluster; changes a file.
//
// Read first: [Rules], then [Dir].
package lint
