// Package node holds the sources of the node image.
//
// Does: carries, as embedded files, everything of the image that Slipway itself writes: the list of Debian packages,
// the files laid over them (entrypoint, units, containerd's configuration, the kubeadm wrapper), the script that
// preloads container images, and two small programs (pause, cniconf).
//
// Owns: the contents of this folder. What is inside the image and which flags a container of it needs is in README.md.
//
// Never: builds anything; that is internal/nodeimage.
//
// Read first: README.md, rootfs/usr/lib/slipway/entrypoint.
package node
