package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
)

// The actions that write the objects of a topology in independent groups. Each may be repeated.
type (
	// group updates one MachineDeployment, MachinePool, control plane or infrastructure cluster and the objects
	// that it references.
	group struct {
		Key   topology.Key
		Steps []reconciler.Action
	}
	// groups updates several groups; a failing group does not block the others.
	groups struct{ Each []group }
	// scale sets the replicas of an object whose template cannot be changed now.
	scale struct{ Part *topology.Part }
)

func (a group) String() string {
	var steps []string
	for _, step := range a.Steps {
		steps = append(steps, step.String())
	}
	return strings.Join(steps, "; ")
}
func (a groups) String() string {
	var each []string
	for _, group := range a.Each {
		each = append(each, group.String())
	}
	return strings.Join(each, "; ")
}
func (a scale) String() string {
	want, _ := topology.Replicas(a.Part.Want)
	return fmt.Sprintf("scale %s %s to %d replicas: the rest of it waits for its templates", a.Part.Want.GetKind(), a.Part.Live.GetName(), want)
}

// Parts lets package reconciler run the groups in parallel.
func (a groups) Parts() []reconciler.Action {
	out := make([]reconciler.Action, 0, len(a.Each))
	for _, group := range a.Each {
		out = append(out, group)
	}
	return out
}

// add adds a step to the group of a part. The parts of a group must be added consecutively. decideParts calls it.
func (a *groups) add(key topology.Key, step reconciler.Action) {
	if last := len(a.Each) - 1; last >= 0 && a.Each[last].Key.Group() == key.Group() {
		a.Each[last].Steps = append(a.Each[last].Steps, step)
		return
	}
	a.Each = append(a.Each, group{Key: key, Steps: []reconciler.Action{step}})
}

// actOnGroup runs the steps of a group, for act. After a failure it runs only the steps that do not depend on the
// failed one.
func (c *controller) actOnGroup(ctx context.Context, s snapshot, group group) error {
	var failed error
	for _, step := range group.Steps {
		if failed != nil {
			step = s.withoutTemplates(step)
		}
		if step == nil {
			continue
		}
		if err := c.act(ctx, s, step); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// withoutTemplates returns the part of a step that is possible while a template of its group cannot be written:
// setting the replicas of an existing object, and applying its health check. It returns nil if nothing is possible.
func (s snapshot) withoutTemplates(step reconciler.Action) reconciler.Action {
	part := partOf(step)
	switch {
	case part == nil || !s.hasGroup(part.Key):
	case part.Role.IsHealthCheck():
		return step
	case part.Key != part.Key.Group() || part.Live == nil:
	default:
		have, _ := topology.Replicas(part.Live)
		if want, set := topology.Replicas(part.Want); set && want != have {
			return scale{part}
		}
	}
	return nil
}

// hasGroup reports whether the worker or the control plane that a part belongs to exists.
func (s snapshot) hasGroup(key topology.Key) bool {
	if key.Role == topology.ControlPlaneHealthCheck || key.Role == topology.ControlPlane {
		return s.Live.ControlPlane.Unstructured != nil
	}
	return s.Exists(key.OfWorker())
}

// partOf returns the part that a step writes, or nil.
func partOf(step reconciler.Action) *topology.Part {
	switch a := step.(type) {
	case create:
		return a.Part
	case apply:
		return a.Part
	}
	return nil
}

// scale sets only the replicas. act calls it.
func (c *controller) scale(ctx context.Context, part *topology.Part) error {
	want, _ := topology.Replicas(part.Want)
	var problem error
	err := c.applier.PatchOwned(ctx, part.Live, func(o client.Object) {
		switch o := o.(type) {
		case *clusterv1.MachineDeployment:
			o.Spec.Replicas = new(int32(want))
		case *clusterv1.MachinePool:
			o.Spec.Replicas = new(int32(want))
		case *unstructured.Unstructured:
			problem = unstructured.SetNestedField(o.Object, want, "spec", "replicas")
		}
	})
	return errors.Join(problem, err)
}
