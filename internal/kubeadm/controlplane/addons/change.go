package addons

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Change is one object of a workload cluster to create or change. It is an action in the plan of the
// KubeadmControlPlane controller, which executes it with [Apply].
type Change struct {
	// Object is the name of the object. Why describes the difference and its reason.
	Object, Why string
	// before is the observed object, or nil if it does not exist.
	before, after client.Object
}

func (c Change) String() string {
	verb := "change"
	if c.before == nil {
		verb = "create"
	}
	return fmt.Sprintf("%s %s of the workload cluster: %s", verb, c.Object, c.Why)
}

// change returns a change of an existing object. The plans before a join and after all Machines are up to date call it.
func change(before, after client.Object, why string, args ...any) Change {
	return Change{Object: describe(before, before.GetName()), Why: fmt.Sprintf(why, args...), before: before, after: after}
}

// Actions returns the changes as actions of a plan. The KubeadmControlPlane controller plans them and passes each one
// to [Apply].
func Actions(changes []Change) []reconciler.Action {
	var out []reconciler.Action
	for _, c := range changes {
		out = append(out, c)
	}
	return out
}

// Apply applies a change. It is idempotent, and it returns a conflict if the object was written since it was read. The
// KubeadmControlPlane controller calls it when it executes an action from [Actions].
func Apply(ctx context.Context, writer *kube.Writer, c Change) error {
	if c.before == nil {
		return writer.Create(ctx, c.after.DeepCopyObject().(client.Object))
	}
	return writer.Patch(ctx, c.before, func(o client.Object) {
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(c.after).Elem())
		o.SetManagedFields(nil) // the object it is compared with has none either
	})
}
