package backend

import (
	"context"
	"io"

	"github.com/slipwayhq/slipway/internal/kubeadm/recovery"
)

// EtcdRecovery reaches the etcd members of control planes through their machines, for recovery after the loss of quorum, when
// they cannot be reached through an API server. Errors are faults.
type EtcdRecovery interface {
	// Survey returns the state that the etcd member on a machine reports.
	Survey(ctx context.Context, ref Ref) (recovery.MemberState, error)
	// Rebuild starts to make the etcd member on a machine the only member of its cluster, from its own data or from a
	// staged snapshot. It does so once for each order and does not wait for the end.
	Rebuild(ctx context.Context, ref Ref, order recovery.EtcdOrder) error
	// Rebuilt returns the progress of Rebuild. It returns NotStarted if Rebuild was interrupted, so that the next call
	// resumes it.
	RebuildProgress(ctx context.Context, ref Ref, order recovery.EtcdOrder) (Progress, error)
	// Stage copies a snapshot, which content writes, onto a machine, restores it to a data directory there and waits
	// for the end. The data in use are not changed.
	Stage(ctx context.Context, ref Ref, order recovery.EtcdOrder, content func(io.Writer) error) error
	// Staged reports whether the snapshot of the order has been staged.
	Staged(ctx context.Context, ref Ref, order recovery.EtcdOrder) (bool, error)
}
