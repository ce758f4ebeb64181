// Package discovery decides how a joining machine finds and trusts its cluster.
//
// Does: fills in the discovery section of a JoinConfiguration, describes bootstrap tokens as
// the Secrets they are in the workload cluster, and decides when a token has to be made, extended or
// replaced, as functions of the time.
//
//	remaining time of a token   TTL ── 5/6 ───────── 1/2 ───────── 0
//	Machine without a Node      keep │ extend to TTL …
//	MachinePool                 keep              │ replace by another, old one expires
//
// Owns: the shape of the Secrets kube-system/bootstrap-token-<id>.
//
// Never: talks to an API, or reads a clock.
//
// Read first: [Complete], [Refresh], [Rotate].
package discovery
