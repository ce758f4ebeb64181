// Package input reads the input of a plan: the proposed objects and the existing ones. It reads manifests from files,
// folders and standard input, copies a management cluster with list calls ([ReadCluster]) or from files ([ReadFolder]), and
// converts all objects to the versions that the controllers use. It never reads the content of a cluster's Secrets.
package plan
