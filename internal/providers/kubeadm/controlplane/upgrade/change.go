package upgrade

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
)

// Change is one object of a workload cluster that has to be created or changed.
type Change struct {
	// Object names it, Why says what is different and for what reason.
	Object, Why string
	// before is the object as it was read; nil: it does not exist.
	before, after client.Object
}

// String says what is changed, and why.
func (c Change) String() string {
	verb := "change"
	if c.before == nil {
		verb = "create"
	}
	return fmt.Sprintf("%s %s of the workload cluster: %s", verb, c.Object, c.Why)
}

// change of an object that exists.
func change(before, after client.Object, why string, args ...any) Change {
	return Change{Object: describe(before, before.GetName()), Why: fmt.Sprintf(why, args...), before: before, after: after}
}

// Actions are changes as a plan has them.
func Actions(changes []Change) []loop.Action {
	var out []loop.Action
	for _, c := range changes {
		out = append(out, c)
	}
	return out
}

// Apply carries a change out. It may be repeated; another write since the object was read is a conflict.
func Apply(ctx context.Context, writer *kube.Writer, c Change) error {
	if c.before == nil {
		return writer.Create(ctx, c.after.DeepCopyObject().(client.Object))
	}
	return writer.Patch(ctx, c.before, func(o client.Object) {
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(c.after).Elem())
		o.SetManagedFields(nil) // as those of what it is compared with
	})
}
