package remote

import (
	"context"
	"net"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/remote/portforward"
)

// Forward connects to a port of a Pod of the workload cluster, through its API server. The error is ErrNotConnected where there is
// no connection. The limits of calls do not hold for it.
func (c *Clusters) Forward(ctx context.Context, key client.ObjectKey, to portforward.Target) (net.Conn, error) {
	conn, err := c.connection(key)
	if err != nil {
		return nil, err
	}
	return portforward.Dial(ctx, conn.upgrades, conn.address, to)
}
