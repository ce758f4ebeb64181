// Package admission implements defaulting and validation of objects, as pure functions of the old and the new object in
// the storage version ([Default], [Validate]). It covers every kind of Cluster API and of Slipway that has rules which
// a CRD schema or CEL cannot express; all other rules are in the CRDs. There is one file for each kind, and several for
// ClusterClasses (class*.go) and for topologies of Clusters (topology*.go). Rules that depend on other objects, such as
// the class of a Cluster or the Clusters that use a class, get them in the [Request]; package manager/webhook reads
// them and serves the functions.
package admission
