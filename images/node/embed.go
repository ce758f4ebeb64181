package node

import "embed"

// Sources are the source files of the node image. File modes are not preserved: a file whose first two bytes are "#!"
// is executable.
//
//go:embed all:rootfs packages.txt packages-network.txt links.txt pins.txt preload pause/main.go cniconf/*.go kube-proxy
var Sources embed.FS
