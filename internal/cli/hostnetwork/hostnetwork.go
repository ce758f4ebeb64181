// Package hostnetwork reads what is known of this host's networks when a verb chooses one for a cluster.
//
// Does: reads the ranges that no network may take, and what the operator of the management cluster that runs here allows ([Of]).
//
// Never: chooses; package creation does.
//
// Read first: [Of].
package hostnetwork

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/clusterctl/creation"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend/container/kernel"
)

// Of returns what is known of this host. What its operator allows is known of the management cluster of "slipway up" that runs here; c may be nil.
func Of(ctx context.Context, c *management.Connection) (creation.Host, error) {
	if c == nil || c.DataDir == "" {
		routes, err := taken(ctx, nil)
		return creation.Host{Routes: routes}, err
	}
	state, err := datadir.Inspect(datadir.Dir(c.DataDir))
	if err != nil {
		return creation.Host{}, err
	}
	if state.Run == nil || state.Run.Networks == nil {
		routes, err := taken(ctx, nil)
		return creation.Host{Routes: routes}, err
	}
	allowed := state.Run.Networks
	routes, err := taken(ctx, allowed.Named)
	return creation.Host{Routes: routes, Networks: &policy.Networks{Ranges: allowed.Ranges, WidestPrefix: allowed.WidestPrefix}}, err
}

// taken returns what no network of a cluster may take: what the host reaches, Docker's networks included, and what its operator names.
// A host without a table of routes is not one that Docker runs on.
func taken(ctx context.Context, named []string) ([]netip.Prefix, error) {
	var hosts []policy.Named
	for _, n := range named {
		hosts = append(hosts, policy.Named{Host: n})
	}
	ranges, err := kernel.ThisHost().Ranges(ctx, hosts)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what this host reaches: %w", err)
	}
	var out []netip.Prefix
	for _, r := range ranges {
		out = append(out, r.Range)
	}
	return out, nil
}
