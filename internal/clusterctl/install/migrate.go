package install

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/migration"
)

// migrate rewrites every object of a CRD in the current storage version, so that a later CRD may omit earlier versions.
func migrate(ctx context.Context, c client.Client, name string) error {
	access := map[string]migration.Access{name: {Reader: c, Client: c}}
	return migration.New(c, c, access, nil).Migrate(ctx, logr.Discard())
}
