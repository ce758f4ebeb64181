package simulated

import (
	"context"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
)

// networks implements backend.Networks without networks.
type networks struct{}

// NetworkCapabilities implements backend.Networks.
func (networks) NetworkCapabilities(p policy.Configuration) backend.NetworkCapabilities {
	return backend.NetworkCapabilities{NoNetwork: true, Denied: p.DeniedSimulated()}
}

// EnsureNetwork implements backend.Networks.
func (networks) EnsureNetwork(context.Context, backend.NetworkSpec) (backend.Network, error) {
	return backend.Network{}, nil
}

// FindNetwork implements backend.Networks.
func (networks) FindNetwork(context.Context, backend.Ref) (backend.Network, bool, error) {
	return backend.Network{}, false, nil
}

// DeleteNetwork implements backend.Networks.
func (networks) DeleteNetwork(context.Context, backend.Ref) error { return nil }

// UsedRanges implements backend.Networks.
func (networks) UsedRanges(context.Context) ([]backend.UsedRange, error) { return nil, nil }
