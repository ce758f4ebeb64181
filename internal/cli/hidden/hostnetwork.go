package hidden

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/local/container"
	"github.com/slipwayhq/slipway/internal/operate/create"
	"github.com/slipwayhq/slipway/internal/policy"
)

// HostNetworks returns the networks of this host, for the choice of a network by "create cluster" and "generate
// cluster". The ranges that the operator allows are known only for a management cluster of "slipway up" on this host; c
// may be nil.
func HostNetworks(ctx context.Context, c *management.Connection) (create.Host, error) {
	if c == nil || c.DataDir == "" {
		routes, err := usedRanges(ctx, nil)
		return create.Host{Routes: routes}, err
	}
	state, err := datadir.Inspect(datadir.Dir(c.DataDir))
	if err != nil {
		return create.Host{}, err
	}
	if state.Run == nil || state.Run.Networks == nil {
		routes, err := usedRanges(ctx, nil)
		return create.Host{Routes: routes}, err
	}
	allowed := state.Run.Networks
	routes, err := usedRanges(ctx, allowed.Named)
	return create.Host{Routes: routes, Networks: &policy.Networks{Ranges: allowed.Ranges, WidestPrefix: allowed.WidestPrefix}}, err
}

// usedRanges returns the ranges that no cluster network may use: the ranges that the host can reach, including Docker's
// networks, and the ranges that the operator lists. A host without a routing table cannot run Docker.
func usedRanges(ctx context.Context, named []string) ([]netip.Prefix, error) {
	var hosts []policy.ReachableHost
	for _, n := range named {
		hosts = append(hosts, policy.ReachableHost{Host: n})
	}
	ranges, err := container.ThisHost().Ranges(ctx, hosts)
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
