// Package lint implements `slipway provider lint`: it checks provider releases against the clusterctl contract. It
// finds the releases in a folder, reads them as clusterctl does, and checks the rules of [Rules]: files, metadata,
// variables, namespace, labels, Deployments, certificates, CRDs by the contract of their role (package sdk/contract),
// permissions for the core controllers, Pod security, cluster templates and ClusterClasses. Violations of mandatory
// rules make a release unusable for at least some clusterctl commands; the other rules are advice. The names of the
// rules are stable. The package accesses no cluster and changes no files.
package lint
