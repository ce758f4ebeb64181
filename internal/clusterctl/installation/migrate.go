package installation

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/migration"
)

// migrate has every object of a CRD stored in the version that the API server stores now, so that a later CRD may lack the
// versions before it.
func migrate(ctx context.Context, c client.Client, name string) error {
	access := map[string]migration.Access{name: {Reader: c, Client: c}}
	return migration.New(c, c, access, nil).Migrate(ctx, logr.Discard())
}
