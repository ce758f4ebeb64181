// Package nodeimage builds and lists the images of nodes that run in containers. For one Kubernetes version it builds a
// Debian userland with systemd, containerd, kubelet and kubeadm, and preloads the container images that a cluster
// needs, so that a node never pulls. The programs of Kubernetes and containerd are compiled from their Go modules;
// everything else comes from Debian or from images/node (see images/node/README.md). The result of each step is cached
// under the hash of its inputs, so that repeating a build takes a second. The images are named slipway.dev/node and
// slipway.dev/node-control-plane.
package nodeimage
