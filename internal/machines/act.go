package machines

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines/clone"
)

// Act carries out an action of this package.
func (k Keeper) Act(ctx context.Context, s State, action loop.Action) error {
	switch a := action.(type) {
	case SyncMachine:
		m := s.Members.Named(a.Machine).Machine
		return k.Sync(ctx, m, s.InPlace(m))
	case SyncTimeouts:
		return k.Writer.Named(k.Manager).Patch(ctx, s.Members.Named(a.Machine).Machine, func(o client.Object) {
			o.(*clusterv1.Machine).Spec.Deletion = s.Definition.Spec.Deletion
		})
	case SyncClone:
		o := s.Clones.Items[clone.Key{Kind: a.Kind, Name: a.Name}]
		return k.clones().Sync(ctx, o.Unstructured, s.metadata(s.Members.Named(a.Machine).Machine))
	case DeleteOrphan:
		return k.deleteOrphan(ctx, s, a)
	case SetConditions:
		return k.setConditions(ctx, s, a)
	case BeginUpdate:
		return k.beginUpdate(ctx, s, a)
	case Create:
		return k.create(ctx, s, a)
	case Delete:
		return k.delete(ctx, s, a)
	}
	return fault.New(fault.Bug, "UnknownAction", "%s is no action on Machines", action)
}

func (k Keeper) clones() clone.Writers {
	return clone.Writers{Live: k.Live, Creator: k.Manager, Metadata: k.MetadataManager, Writer: k.Writer}
}

// create creates a Machine: its clones, then itself, each with one write.
func (k Keeper) create(ctx context.Context, s State, a Create) error {
	for _, name := range a.Names {
		objects, err := s.Definition.Objects(name)
		if err != nil {
			return err
		}
		if err := k.CreateAll(ctx, objects...); err != nil {
			return err
		}
		k.Pending.Created(s.Definition.Owner.UID, name, s.Now)
	}
	return nil
}

// CreateAll creates objects in their order. Where one cannot be created, those before it are deleted again; what cannot be deleted
// either is an orphan, which a later reconciliation finds. After a refusal, as by a quota, all are rehearsed first: a refusal that
// lasts for days must not create and delete objects every few seconds.
func (k Keeper) CreateAll(ctx context.Context, objects ...*unstructured.Unstructured) error {
	owner := ownerOf(objects)
	if k.Pending.wasRefused(owner) {
		if err := k.rehearse(ctx, objects); err != nil {
			return err
		}
	}
	for i, o := range objects {
		if err := k.Writer.Named(k.Manager).CreateApplied(ctx, o); err != nil {
			k.Pending.refused(owner, isRefusal(err))
			k.undo(ctx, objects[:i])
			return err
		}
	}
	k.Pending.refused(owner, false)
	return nil
}

// rehearse returns the refusal of one of the objects. Another error is none: a webhook need not support dry runs.
func (k Keeper) rehearse(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := k.Writer.Named(k.Manager).Rehearse(ctx, o); isRefusal(err) {
			return err
		}
	}
	return nil
}

// isRefusal reports whether an admission plugin or webhook, a quota, or validation refused an object.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// undo deletes what was created, whatever its provider has written to it meanwhile. An error is only logged: the one that led here
// is what users have to know.
func (k Keeper) undo(ctx context.Context, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if err := k.Writer.DeleteAnyway(ctx, o); err != nil {
			ctrl.LoggerFrom(ctx).Info("cleaning up after a refused creation failed, a later reconciliation retries", "error", err.Error())
		}
	}
}

// ownerOf is the UID of the controller of objects that are created together.
func ownerOf(objects []*unstructured.Unstructured) types.UID {
	for _, o := range objects {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return owner.UID
		}
	}
	return ""
}

// deleteOrphan reads past the cache that there is no Machine for it.
func (k Keeper) deleteOrphan(ctx context.Context, s State, a DeleteOrphan) error {
	for _, o := range s.Clones.Orphans {
		if o.GetKind() != a.Kind || o.GetName() != a.Name {
			continue
		}
		err := k.Live.Get(ctx, client.ObjectKey{Namespace: o.GetNamespace(), Name: a.Name}, &clusterv1.Machine{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading Machine %s: %w", a.Name, err)
		}
		return k.Writer.Delete(ctx, o.Unstructured)
	}
	return nil
}

// setConditions applies conditions of a Machine; all others belong to the Machine controller.
func (k Keeper) setConditions(ctx context.Context, s State, a SetConditions) error {
	m := s.Members.Named(a.Machine).Machine
	table := condition.Table[SetConditions]{
		{Type: clusterv1.MachineUpToDateCondition, Of: func(a SetConditions) condition.Verdict { return a.UpToDate }},
		{Type: clusterv1.MachineOwnerRemediatedCondition, Of: func(a SetConditions) condition.Verdict { return a.Remediated }},
	}
	owned := []string{clusterv1.MachineOwnerRemediatedCondition}
	if a.UpToDate != condition.Absent() { // else the Machine controller's, or it is not set
		owned = append(owned, clusterv1.MachineUpToDateCondition)
	}
	if err := k.Writer.TakeOverStatus(ctx, k.Live, m, kube.Conditions(owned...)); err != nil {
		return err
	}
	status := map[string]any{}
	if conditions := table.Evaluate(a, loop.MomentOf(m, s.Now)); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return k.Writer.ApplyStatus(ctx, m, status)
}

func (k Keeper) delete(ctx context.Context, s State, a Delete) error {
	for _, name := range a.Names {
		m := s.Members.Named(name)
		if m.Machine == nil || m.Deleted {
			continue
		}
		if err := k.Writer.Delete(ctx, m.DeepCopy()); err != nil {
			return err
		}
		k.Pending.Deleted(s.Definition.Owner.UID, name, s.Now)
	}
	return nil
}
