// Package input reads what a plan is made from: the proposed objects, and those that there are.
//
// Does: reads manifests from files, folders and the standard input; copies a management cluster with list calls ([Cluster]) or
// from files ([Folder]); brings all objects into the versions that the controllers use.
//
// Never: writes, or reads the content of a Secret of a cluster.
//
// Read first: [Cluster].
package input
