package topology

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/patch"
)

// The reads and actions of the controller. Each action may be repeated. [decide] plans them. A [topology.Part] is one
// object of the topology with its desired and its existing state.
type (
	// askWorkers requests a live read of the workers that this process created and the cache does not show yet, so
	// that nothing is created twice.
	askWorkers struct{}
	// askChange requests a dry run to check whether applying the desired state changes the spec of a template.
	askChange struct{ Part *topology.Part }
	// askExtension requests a call of an extension for patches.
	askExtension struct{ Question patch.ExtensionRequest }
	// create creates an object of the topology.
	create struct{ Part *topology.Part }
	// apply applies the desired state to an object.
	apply struct{ Part *topology.Part }
	// setClusterReferences sets the Cluster's references to the objects that were created for it, and the list of its
	// workers.
	setClusterReferences struct {
		Desired *topology.Desired
		Workers string
	}
	// deleteObject deletes an object that is not needed any more.
	deleteObject struct {
		Object          client.Object
		Kind, Name, Why string
	}
)

func (q askWorkers) String() string {
	return "whether the MachineDeployments and MachinePools that were just created exist"
}
func (q askChange) String() string {
	return fmt.Sprintf("whether the spec of %s %s changes", q.Part.Want.GetKind(), q.Part.Live.GetName())
}
func (q askExtension) String() string { return q.Question.String() }
func (a create) String() string {
	why := "the topology requires it"
	if a.Part.Replaces != nil {
		why = "it replaces " + a.Part.Replaces.GetName() + ", whose spec is different"
	}
	return fmt.Sprintf("create %s %s, %s: %s", a.Part.Want.GetKind(), a.Part.Want.GetName(), a.Part.Key, why)
}
func (a apply) String() string {
	return fmt.Sprintf("apply %s %s, %s: it differs from the topology", a.Part.Want.GetKind(), a.Part.Want.GetName(), a.Part.Key)
}
func (a setClusterReferences) String() string {
	return "set the references of the Cluster, and the list of its workers: they are created"
}
func (a deleteObject) String() string { return fmt.Sprintf("delete %s %s: %s", a.Kind, a.Name, a.Why) }

// answer performs the read or call that [decide] requests. Package reconciler calls it and then decide again.
func (c *controller) answer(ctx context.Context, s snapshot, question reconciler.ReadRequest) (snapshot, error) {
	switch q := question.(type) {
	case askWorkers:
		return c.readUnseenWorkers(ctx, s)
	case askHook:
		return c.callHook(ctx, s, q.Question)
	case askExtension:
		return c.callExtension(ctx, s, q.Question)
	case askUsed:
		var err error
		s.Used, err = c.used.Read(ctx, s.Cluster)
		return s, err
	case askChange:
		changed, err := c.changes(ctx, q.Part)
		if err != nil && ctx.Err() == nil && fault.KindOf(err) != fault.Conflict {
			return s.undecided(q.Part, err), nil
		}
		return s.with(q.Part, changed), err
	}
	return s, reconciler.UnknownRead("topology", question)
}

// with records whether the spec of a template changes. The result "unchanged" is recorded only for the exact state
// that was checked, because the template may change later when another object in it gets a new name.
func (s snapshot) with(part *topology.Part, changed bool) snapshot {
	if s.Changed, s.Unchanged = maps.Clone(s.Changed), maps.Clone(s.Unchanged); s.Changed == nil {
		s.Changed, s.Unchanged = map[topology.Key]bool{}, map[string]bool{}
	}
	if changed {
		s.Changed[part.Key] = true
	} else {
		s.Unchanged[topology.Fingerprint(part.Live, part.Want)] = true
	}
	return s
}

// undecided records why it is unknown whether a template changes. The rest of the topology does not wait for it.
func (s snapshot) undecided(part *topology.Part, err error) snapshot {
	s.Undecided = maps.Clone(s.Undecided)
	if s.Undecided == nil {
		s.Undecided = map[topology.Key]error{}
	}
	s.Undecided[part.Key] = s.stepError(apply{part}, err)
	return s
}

// changes reports whether applying the desired state changes the spec of a template. A rejection by the API counts
// as a change, because some webhooks without support for dry runs reject changes of templates. If the spec itself
// is invalid, the creation of the new template reports the error.
func (c *controller) changes(ctx context.Context, part *topology.Part) (bool, error) {
	after, err := c.applier.DryRun(ctx, part.Live, part.Want)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	before, ok := part.Live.(*unstructured.Unstructured)
	return !ok || !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]), nil
}

// act runs one action. Package reconciler calls it for each action that [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case create:
		return s.stepError(a, c.create(ctx, s, a.Part))
	case apply:
		return s.stepError(a, c.apply(ctx, a.Part.Live, a.Part.Want))
	case groups: // a single group
		for _, group := range a.Each {
			if err := c.act(ctx, s, group); err != nil {
				return err
			}
		}
		return nil
	case group:
		return c.actOnGroup(ctx, s, a)
	case scale:
		return s.stepError(a, c.scale(ctx, a.Part))
	case record:
		return c.record(ctx, s, a.Annotations)
	case retryFailures:
		return a.err()
	case setClusterReferences:
		return c.writer.PatchOwned(ctx, s.Cluster, func(o client.Object) {
			topology.SetReferences(o.(*clusterv1.Cluster), *a.Desired)
			setWorkersAnnotation(o, a.Workers)
		})
	case release:
		return c.release(ctx, a)
	case deleteObject:
		return c.writer.DeleteAnyway(ctx, a.Object)
	}
	return reconciler.UnknownAction("topology", action)
}

func (c *controller) apply(ctx context.Context, live client.Object, want *unstructured.Unstructured) error {
	if err := c.applier.Apply(ctx, live, want); err != nil {
		return err
	}
	c.attempts.Record(live, want)
	return nil
}

// create creates an object. An existing object with the same name was created by an earlier attempt, or does not
// belong to the topology.
func (c *controller) create(ctx context.Context, s snapshot, part *topology.Part) error {
	want, have := part.Want, &unstructured.Unstructured{}
	have.SetGroupVersionKind(want.GroupVersionKind())
	err := c.live.Get(ctx, client.ObjectKeyFromObject(want), have)
	switch {
	case apierrors.IsNotFound(err):
		if part.Role == topology.Deployment || part.Role == topology.Pool {
			c.created.note(client.ObjectKeyFromObject(s.Cluster), want)
		}
		return c.applier.CreateApplied(ctx, want)
	case err != nil:
		return fmt.Errorf("reading %s %s: %w", want.GetKind(), want.GetName(), err)
	case !topology.IsOwnedBy(s.Cluster, have):
		return fault.New(fault.Invalid, "AlreadyExists", "%s %s exists and is not of the topology of Cluster %s: rename or delete it",
			want.GetKind(), want.GetName(), s.Cluster.Name)
	case !have.GetDeletionTimestamp().IsZero():
		return fault.New(fault.Transient, "StillDeleting", "%s %s, which was of the topology before, is still being deleted", want.GetKind(), want.GetName())
	case part.Role.IsTemplate():
		return c.reuse(ctx, have, part)
	}
	return c.apply(ctx, have, want)
}

// reuse applies the desired template to the one that an earlier attempt created. If that has another spec and is
// not in use, it is deleted and the next reconciliation creates it again.
func (c *controller) reuse(ctx context.Context, have *unstructured.Unstructured, part *topology.Part) error {
	changed, err := c.changes(ctx, &topology.Part{Key: part.Key, Want: part.Want, Live: have})
	if err != nil {
		return err
	}
	if !changed {
		return c.apply(ctx, have, part.Want)
	}
	used, err := c.used.Read(ctx, have)
	if err != nil {
		return err
	}
	if used[topology.Reference(have)] {
		return fault.New(fault.Transient, "TemplateInUse", "%s %s differs from the topology and is still in use", have.GetKind(), have.GetName())
	}
	if err := c.writer.DeleteAnyway(ctx, have); err != nil {
		return err
	}
	return fault.New(fault.Conflict, "TemplateReplaced", "%s %s of an earlier attempt had another spec", have.GetKind(), have.GetName())
}
