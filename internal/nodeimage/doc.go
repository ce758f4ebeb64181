// Package nodeimage builds and lists the images of nodes that run in containers. For one Kubernetes version, [Build]
// builds a Debian userland with systemd, containerd, kubelet and kubeadm, and preloads the container images that a
// cluster needs, so that a node never pulls. Everything that is not compiled comes from Debian or from images/node (see
// images/node/README.md). The result of each step is cached under the hash of its inputs, so that repeating a build
// takes a second. The images are named slipway.dev/node and slipway.dev/node-control-plane. The commands under `slipway
// image` build and list them, and other commands check which ones exist. Package bundle packs the parts of a build for
// SSH hosts ([BuildHostParts]).
//
// The programs of Kubernetes and containerd are compiled from their Go modules, together with one version of
// Kubernetes: a [ModuleMaker] creates the go.mod that a Kubernetes program needs outside of the Kubernetes repository,
// a [GoToolchain] compiles the program with the Go toolchain of this host and verifies the checksums of the modules,
// and a [BuildCache] caches each result in a directory. Package versions compiles the programs of hosted control planes
// in the same way.
//
// The steps of a build:
//
//	Go modules ─► programs ───────────┐
//	Debian ─► system userland ────────┼─► base image ─────────┐
//	images/node ─► files and links ───┘                       ├─► preload script in a container ─► node image
//	programs, network userland ─► archive of container images ┘
package nodeimage
