// Package container runs nodes as containers of the Docker Engine on this host.
//
// Does: implements the verbs of package backend through Docker's API: one internal network per LocalCluster, one
// container per LocalMachine, the bootstrap script as a process inside it that outlives this program, and Docker's
// event stream as the source of changes.
//
//	LocalCluster ── EnsureNetwork ──► network  slipway-NS-NAME-HASH  (internal unless asked, host is .1)
//	LocalMachine ── Create ─────────► container slipway-NS-NAME-HASH (volume on /var, own address)
//	                Bootstrap ──────► exec: script ─► result file ─► exec_die event ─► Watch
//
// Owns: every container, volume and network that carries the label dev.slipway.instance with this instance's name, or was handed
// over by another one (package custody);
// the host's fs.inotify limits, which it raises and never lowers.
//
// Never: pulls images, writes to the Kubernetes API, puts a secret where `docker inspect` shows it, or touches what
// another instance made.
//
// Read first: engine.go, then machine.go.
package container
