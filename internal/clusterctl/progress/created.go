package progress

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/clusterctl/tree"
	"github.com/slipwayhq/slipway/internal/fault"
)

// Created waits until the cluster is available with all its nodes, and shows how far it is. A cluster that is not there,
// or goes meanwhile, is a fault of kind Gone.
func Created(ctx context.Context, c client.WithWatch, key client.ObjectKey, show Reporter) error {
	return Run(ctx, NewAPI(ctx, c, key), func(s tree.Snapshot, err error) ([]Step, error) {
		if apierrors.IsNotFound(err) {
			return nil, fault.New(fault.Gone, ReasonDeleted, "cluster %q does not exist (any more)", key.Name).From(err)
		}
		if err != nil {
			return nil, err
		}
		return Creation(s)
	}, show)
}
