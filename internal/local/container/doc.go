// Package container runs nodes as containers of the Docker Engine on this host. It implements package backend through
// Docker's API: one network per LocalCluster, one container per LocalMachine, the bootstrap script as a process inside it
// that outlives this program, and Docker's event stream as the source of changes.
//
//	LocalCluster ── EnsureNetwork ──► network  slipway-NS-NAME-HASH  (internal by default, host is .1)
//	LocalMachine ── Create ─────────► container slipway-NS-NAME-HASH (volume on /var, fixed address)
//	                Bootstrap ──────► exec: script ─► result file ─► exec_die event ─► Watch
//
// It manages only the containers, volumes and networks whose label dev.slipway.instance names this instance, or which
// were transferred from another instance (package custody). It raises the host's fs.inotify limits and never lowers
// them. It never pulls images and never stores a secret where `docker inspect` shows it.
package container
