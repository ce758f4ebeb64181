package reference

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Act runs an action of this package on the link that the action names.
func Act(ctx context.Context, w *kube.Writer, action reconciler.Action, links ...Link) error {
	for _, l := range links {
		switch a := action.(type) {
		case SetOwner:
			if a.Role == l.Name {
				return w.Patch(ctx, l.Object().Unstructured, func(o client.Object) { l.own(o) })
			}
		case Delete:
			if a.Role == l.Name {
				return w.DeleteAnyway(ctx, l.Object().Unstructured)
			}
		}
	}
	return fault.New(fault.Bug, "UnknownAction", "no link to %s", action)
}
