// Package kept stores archives of container images and loads them into the nodes of a cluster that are created later.
// It has a directory of archives for each cluster ([ImageArchives]). [WrapPreloading] wraps a backend so that the archives are
// loaded into a machine before its bootstrap script runs, and the images are available to it. The content of an archive
// is not inspected; only the node's container runtime reads it.
package backend
