package reference

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Act sets the owner of a provider object (infrastructure, bootstrap config or control plane) that a controller's
// object references, or deletes it. The Cluster, Machine and MachinePool controllers call it for the actions that
// [Link.Decide] and [Link.Delete] planned. The arguments links are all references of the object; the action names one
// by its role. The deletion ignores changes since the object was read, because providers write to their objects all the
// time.
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
	return fault.New(fault.Bug, "UnknownAction", "the object has no reference for the action %q", action)
}
