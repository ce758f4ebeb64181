// Package bundle builds, stores and carries bundles: everything that turns a plain Linux host with systemd into a
// Kubernetes node without downloads. A bundle is for one Kubernetes version and architecture. [Store.Build] compiles
// and collects it with package nodeimage, so that hosts run the same programs and container images as nodes in
// containers. A [Store] is a directory of bundles; bundles are exported to one file and imported on another machine.
// `slipway bundle` changes the store, and the SSH provider installs bundles on its hosts.
//
// Programs that are compiled from Go modules are static. Programs of Debian (runc, the CNI plugins, iptables) carry
// their libraries and their program loader, and are changed to use these at a fixed path, so that they run on any
// distribution of the architecture, whatever its C library is.
//
// A bundle is a directory, and has the same paths below /var/lib/slipway/bundles on a host:
//
//	manifest.json    version, architecture, pause image, and every file with its size, mode and SHA-256
//	bin/             programs and commands
//	cni/             CNI plugins
//	lib/             libraries and the program loader of Debian's programs
//	images/          archives of container images: of every node, and of control planes
package bundle
