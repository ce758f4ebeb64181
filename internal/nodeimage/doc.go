// Package nodeimage builds and lists the images that nodes in containers are started from.
//
// Does: makes, for one Kubernetes version, a Debian userland with systemd, containerd, kubelet and kubeadm, and
// preloads the container images a cluster needs, so that a node never pulls. The programs of Kubernetes and containerd are
// compiled from their Go modules; everything else comes from Debian or from images/node. Each step is kept under the hash of what
// it is made from: a second build of the same thing takes a second.
//
// Owns: Docker images named slipway.dev/node and slipway.dev/node-control-plane, and the cache folder.
//
// Never: starts nodes (internal/providers/local), changes a cluster, pulls a container image.
//
// Read first: nodeimage.go, steps.go, then images/node/README.md.
package nodeimage
