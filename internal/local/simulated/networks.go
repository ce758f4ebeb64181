package simulated

import (
	"context"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// networks implements backend.Networks for the LocalCluster controller without networks: simulated machines need none.
type networks struct{}

func (networks) NetworkCapabilities(p policy.Configuration) backend.NetworkCapabilities {
	return backend.NetworkCapabilities{NoNetwork: true, Denied: p.DeniedSimulated()}
}

func (networks) EnsureNetwork(context.Context, backend.NetworkSpec) (backend.Network, error) {
	return backend.Network{}, nil
}

func (networks) FindNetwork(context.Context, backend.Ref) (backend.Network, bool, error) {
	return backend.Network{}, false, nil
}

func (networks) DeleteNetwork(context.Context, backend.Ref) error { return nil }

func (networks) UsedRanges(context.Context) ([]backend.UsedRange, error) { return nil, nil }
