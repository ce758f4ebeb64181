package node

import "embed"

// Sources are the files of this folder that the image is made from. Modes are not kept: a file whose first two bytes
// are "#!" is a program.
//
//go:embed all:rootfs packages.txt packages-network.txt links.txt pins.txt preload pause/main.go cniconf/*.go kube-proxy
var Sources embed.FS
