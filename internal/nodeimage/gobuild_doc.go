// Package gobuild compiles programs from Go modules together with one version of Kubernetes. A [ModuleMaker] creates
// the go.mod that a Kubernetes program needs outside of the Kubernetes repository, a [GoToolchain] compiles the program
// with the Go toolchain of this host, and a [GoStore] caches each result in a directory under the hash of its inputs.
package nodeimage
