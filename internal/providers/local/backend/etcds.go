package backend

import (
	"context"

	"github.com/slipwayhq/slipway/internal/recovery"
)

// Etcds reaches the members of etcd of control planes through their machines, for when there is no quorum and nothing else leads there.
// Errors are faults.
type Etcds interface {
	// Survey returns what the member on a machine says of itself.
	Survey(ctx context.Context, ref Ref) (recovery.Member, error)
	// Rebuild begins to make the member on a machine the only one of its cluster, once for each id, and does not wait for its end.
	Rebuild(ctx context.Context, ref Ref, id string) error
	// Rebuilt returns how far that is: NotStarted also where it was interrupted, so that Rebuild continues it.
	Rebuilt(ctx context.Context, ref Ref, id string) (Progress, error)
}
