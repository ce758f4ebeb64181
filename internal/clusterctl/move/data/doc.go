// Package data takes what hosted control planes store along, from one management cluster to another, through the store of an
// EtcdSnapshotPolicy that both reach. It works with requests on objects alone, so that the two may be on different hosts.
//
//	target could start it? ─► both see the store? ─► source: etcd alone ─► snapshot ─► source: stopped ─► target: restored, answers
//	└──────── the control plane runs ───────────┘    └──────────────── its API does not answer ────────────────────────────────────┘
//
// No write that was acknowledged is lost: the last snapshot is taken when nothing but etcd runs any more. Until the target answers, the
// source keeps its data and can start it again ([Back]).
//
// Does: says which control planes go along, how, and what keeps them from it ([Survey]); carries it out ([Transfer]).
//
// Owns: the annotations controlplane.slipway.dev/quiesce and /restore of control planes that are moved, while they are, and
// /take-snapshot of their policies.
//
// Never: reaches a store, a host, or etcd itself; deletes or pauses an object (package move does).
//
// Read first: [Survey], then [Transfer.Save].
package data
