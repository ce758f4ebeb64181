// Package data transfers the data of hosted control planes from one management cluster to another, through the store of
// an EtcdSnapshotPolicy that both can access. It only sets annotations on objects, so the two management clusters may
// be on different hosts.
//
//	target can start it? ─► store shared? ─► source: only etcd ─► snapshot ─► source: stopped ─► target: restored, API ready
//	└─────── the control plane runs ───────┘ └──────────────────── its API is not available ─────────────────────────────┘
//
// No acknowledged write is lost, because the final snapshot is taken while only etcd runs. Until the target is ready,
// the source retains its data and can start again ([Transfer.Release]). [dataSurvey] determines which control planes are
// transferred, how, and the problems that prevent it; [dataTransfer] executes the transfer.
//
// During a move the package owns the annotations controlplane.slipway.dev/quiesce and /restore of the control planes,
// and /take-snapshot of their policies. It never accesses a store, a host or etcd itself, and does not delete or pause
// objects; package move does.
package move
