// Package kept keeps archives of container images for the nodes of a cluster that are made later.
//
// Does: has a folder of archives for each cluster, and around a backend of machines that run scripts loads them into a machine
// before its bootstrap script runs, so that what it starts finds them.
//
// Owns: the folder.
//
// Never: reads an archive: what is in it is between who gave it and the container runtime of the node.
//
// Read first: [Archives], [Around].
package kept
