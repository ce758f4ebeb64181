// Package discovery configures how a joining machine finds and trusts its cluster. It completes the discovery section
// of a JoinConfiguration, describes bootstrap tokens as Secrets kube-system/bootstrap-token-<id> of the workload
// cluster, and computes when a token must be created, extended or replaced.
//
//	remaining lifetime of a token   TTL ── 5/6 ───────── 1/2 ───────── 0
//	Machine without a Node          wait │ extend to TTL …
//	MachinePool                     wait               │ replace by another, the previous token expires
//
// The functions have no side effects: callers access the API and pass the time. Start reading at [tokenComplete],
// [tokenRefresh] and [tokenRotate].
package bootstrap
