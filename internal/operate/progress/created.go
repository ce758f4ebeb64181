package progress

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// WaitForCreation waits until the cluster is available with all its nodes, and reports the progress. If the cluster does not
// exist or is deleted meanwhile, the fault is Gone.
func WaitForCreation(ctx context.Context, c client.WithWatch, key client.ObjectKey, show Reporter) error {
	return Run(ctx, NewAPI(ctx, c, key), func(s describe.Snapshot, err error) ([]Step, error) {
		if apierrors.IsNotFound(err) {
			return nil, fault.New(fault.Gone, reasonDeleted, "cluster %q does not exist (any more)", key.Name).From(err)
		}
		if err != nil {
			return nil, err
		}
		return Creation(s)
	}, show)
}
