// Package node embeds the source files of the node image: the list of Debian packages, the files that are added to them
// (entrypoint, units, containerd configuration, kubeadm wrapper), the script that preloads container images, and two
// small programs (pause, cniconf). Package internal/nodeimage builds the image. README.md describes its contents and
// the flags that its containers need.
package node
