package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Answer calls the extension.
func (u inPlaceUpdate) Answer(ctx context.Context, c inplace.Caller) (*inplace.Progress, error) {
	desired := inplace.Machine{Machine: u.Machine, Infrastructure: u.Infrastructure.Object().Unstructured}
	if u.Bootstrap.Presence() == contract.Found {
		desired.Bootstrap = u.Bootstrap.Object().Unstructured
	}
	progress, err := c.UpdateMachine(ctx, desired)
	return &progress, err
}

// Act runs an action of this package. It returns false for any other action.
func (u inPlaceUpdate) Act(ctx context.Context, w *kube.Writer, action reconciler.Action) (bool, error) {
	unmark := func(o client.Object) { kube.Annotate(o, clusterv1.UpdateInProgressAnnotation, nil) }
	switch a := action.(type) {
	case inPlaceFinish:
		return true, w.Patch(ctx, u.Machine, unmark)
	case removeHook:
		return true, w.Patch(ctx, u.Machine, func(o client.Object) { kube.Annotate(o, runtimev1.PendingHooksAnnotation, inplace.WithoutHook(o)) })
	case inPlaceUnmark:
		for _, l := range u.marked() {
			if l.Ref.Kind == a.Kind && l.Ref.Name == a.Name {
				return true, w.Patch(ctx, l.Object().Unstructured, unmark)
			}
		}
		return true, fault.New(fault.Bug, "UnknownAction", "there is no mark to %s", action)
	}
	return false, nil
}
