package backend

import (
	"context"
	"io"

	"github.com/slipwayhq/slipway/internal/recovery"
)

// Etcds reaches the members of etcd of control planes through their machines, for when there is no quorum and nothing else leads there.
// Errors are faults.
type Etcds interface {
	// Survey returns what the member on a machine says of itself.
	Survey(ctx context.Context, ref Ref) (recovery.Member, error)
	// Rebuild begins to make the member on a machine the only one of its cluster, from its own data or from what was staged, once for each
	// order, and does not wait for its end.
	Rebuild(ctx context.Context, ref Ref, order recovery.Order) error
	// Rebuilt returns how far that is: NotStarted also where it was interrupted, so that Rebuild continues it.
	Rebuilt(ctx context.Context, ref Ref, order recovery.Order) (Progress, error)
	// Stage puts a snapshot, which content writes, onto a machine, and makes data of it there. It waits for its end. What is in use is not changed.
	Stage(ctx context.Context, ref Ref, order recovery.Order, content func(io.Writer) error) error
	// Staged reports whether that was done.
	Staged(ctx context.Context, ref Ref, order recovery.Order) (bool, error)
}
