// Package container is the backend that runs nodes as containers of the Docker Engine on this host. It implements
// package backend through Docker's API: one network per LocalCluster, one container per LocalMachine, the bootstrap
// script as a process inside the container that outlives this program, and Docker's event stream as the source of
// changes. [Engine] never pulls an image and never stores a secret where `docker inspect` shows it. It manages only the
// containers, volumes and networks whose label dev.slipway.instance names this instance, or which were transferred from
// another instance (package hosttransfer); identify.go is the only file that checks this, and every change takes a
// value from it. Package local adds the backend to the provider; `slipway up --node` and the commands that access nodes
// create an [Engine] of their own.
//
// Users control the programs in a node, so its output is untrusted: texts are limited in size, reduced to one line
// where they are part of a sentence, and stripped of secrets. [pathGuard] resolves the paths that a node mounts and
// refuses kernel file systems, devices, sockets and reserved directories, together with everything above and below
// them. [KernelHost] manages the kernel settings that the nodes share with their host. It raises the fs.inotify limits,
// which are too low for more than a few nodes, and never lowers them.
//
// The objects of the API, the calls of this package and the resources in Docker:
//
//	LocalCluster ── EnsureNetwork ──► network  slipway-NS-NAME-HASH  (internal by default, host is .1)
//	LocalMachine ── Create ─────────► container slipway-NS-NAME-HASH (volume on /var, fixed address)
//	                Bootstrap ──────► exec: script ─► result file ─► exec_die event ─► Watch
package container
