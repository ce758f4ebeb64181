package cli

import (
	"context"

	"github.com/slipwayhq/slipway/internal/cli/up"
)

// controllers runs none yet: the management cluster alone.
func controllers(ctx context.Context, h up.Host) error {
	h.Ready()
	<-ctx.Done()
	return nil
}
