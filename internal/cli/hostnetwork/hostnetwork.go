// Package hostnetwork says what is known of this host's networks when a verb chooses one for a cluster.
//
// Does: reads the routes, and what the operator of the management cluster that runs here allows ([Of]).
//
// Never: chooses; package creation does.
//
// Read first: [Of].
package hostnetwork

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/clusterctl/creation"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/subnet"
)

// routeTable is where the kernel shows its IPv4 routes.
const routeTable = "/proc/net/route"

// Of is what is known of this host. What its operator allows is known of the management cluster of "slipway up" that runs here; c may be nil.
func Of(c *management.Connection) (creation.Host, error) {
	routes, err := routes()
	if err != nil || c == nil || c.DataDir == "" {
		return creation.Host{Routes: routes}, err
	}
	state, err := datadir.Inspect(datadir.Dir(c.DataDir))
	if err != nil || state.Run == nil || state.Run.Networks == nil {
		return creation.Host{Routes: routes}, err
	}
	allowed := state.Run.Networks
	return creation.Host{Routes: routes, Networks: &policy.Networks{Ranges: allowed.Ranges, WidestPrefix: allowed.WidestPrefix}}, nil
}

// routes returns what the host reaches, Docker's networks included. A host without the table has no say.
func routes() ([]netip.Prefix, error) {
	table, err := os.Open(routeTable)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the routes of this host: %w", err)
	}
	defer table.Close()
	routes, err := subnet.ParseRoutes(table)
	return subnet.Destinations(routes), err
}
