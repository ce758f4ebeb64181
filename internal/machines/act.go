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
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// Act runs an action of this package. The MachineSet and KubeadmControlPlane controllers call it for their planned
// actions. Clones are the bootstrap config and the infrastructure machine of a Machine (package clone).
func (k MachineWriter) Act(ctx context.Context, s OwnerState, action reconciler.Action) error {
	switch a := action.(type) {
	case SyncMachine:
		m := s.Members.Named(a.Machine).Machine
		return k.Sync(ctx, m, s.InPlace(m))
	case syncTimeouts:
		return k.Writer.WithManager(k.Manager).Patch(ctx, s.Members.Named(a.Machine).Machine, func(o client.Object) {
			o.(*clusterv1.Machine).Spec.Deletion = s.Definition.Spec.Deletion
		})
	case SyncClone:
		o := s.Clones.Items[clone.Key{Kind: a.Kind, Name: a.Name}]
		return k.clones().Sync(ctx, o.Unstructured, s.metadata(s.Members.Named(a.Machine).Machine))
	case deleteOrphan:
		return k.deleteOrphan(ctx, s, a)
	case setConditions:
		return k.setConditions(ctx, s, a)
	case BeginUpdate:
		return k.beginUpdate(ctx, s, a)
	case CreateMachines:
		return k.create(ctx, s, a)
	case DeleteMachines:
		return k.delete(ctx, s, a)
	}
	return fault.New(fault.Bug, "UnknownAction", "%s is no action on Machines", action)
}

func (k MachineWriter) clones() clone.Writers {
	return clone.Writers{Live: k.Live, Creator: k.Manager, Metadata: k.MetadataManager, Writer: k.Writer}
}

// create creates Machines: for each, first its clones, then the Machine itself, each with one write.
func (k MachineWriter) create(ctx context.Context, s OwnerState, a CreateMachines) error {
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

// CreateAll creates objects in order. If one cannot be created, the objects created before it are deleted again; an
// object that cannot be deleted becomes an orphan that a later reconciliation finds. After a rejection, for example
// by a quota, all objects are first created in a dry run, because a rejection that lasts for days must not create
// and delete objects every few seconds.
func (k MachineWriter) CreateAll(ctx context.Context, objects ...*unstructured.Unstructured) error {
	owner := ownerOf(objects)
	if k.Pending.wasRejected(owner) {
		if err := k.dryRunCreate(ctx, objects); err != nil {
			return err
		}
	}
	for i, o := range objects {
		if err := k.Writer.WithManager(k.Manager).CreateApplied(ctx, o); err != nil {
			k.Pending.recordRejection(owner, isRefusal(err))
			k.deleteCreated(ctx, objects[:i])
			return err
		}
	}
	k.Pending.recordRejection(owner, false)
	return nil
}

// dryRunCreate returns the rejection of an object in a dry run. Other errors are ignored, because webhooks need not
// support dry runs.
func (k MachineWriter) dryRunCreate(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := k.Writer.WithManager(k.Manager).DryRunCreate(ctx, o); isRefusal(err) {
			return err
		}
	}
	return nil
}

// isRefusal reports whether an admission plugin, a webhook, a quota or the validation rejected an object.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// deleteCreated deletes created objects, even if their provider has changed them in the meantime. Errors are only
// logged, because the original error is more important to users.
func (k MachineWriter) deleteCreated(ctx context.Context, objects []*unstructured.Unstructured) {
	for _, o := range objects {
		if err := k.Writer.DeleteAnyway(ctx, o); err != nil {
			ctrl.LoggerFrom(ctx).Info("cleaning up after a refused creation failed, a later reconciliation retries", "error", err.Error())
		}
	}
}

// ownerOf returns the UID of the controller owner of objects that are created together.
func ownerOf(objects []*unstructured.Unstructured) types.UID {
	for _, o := range objects {
		if owner := metav1.GetControllerOf(o); owner != nil {
			return owner.UID
		}
	}
	return ""
}

// deleteOrphan deletes a clone after a live read has confirmed that its Machine does not exist. A clone has the name of
// its Machine.
func (k MachineWriter) deleteOrphan(ctx context.Context, s OwnerState, a deleteOrphan) error {
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

// setConditions applies the conditions of a Machine that its owner sets. The Machine controller sets all others.
func (k MachineWriter) setConditions(ctx context.Context, s OwnerState, a setConditions) error {
	m := s.Members.Named(a.Machine).Machine
	table := condition.Table[setConditions]{
		{Type: clusterv1.MachineUpToDateCondition, Compute: func(a setConditions) condition.Result { return a.UpToDate }},
		{Type: clusterv1.MachineOwnerRemediatedCondition, Compute: func(a setConditions) condition.Result { return a.Remediated }},
	}
	owned := []string{clusterv1.MachineOwnerRemediatedCondition}
	if a.UpToDate != condition.Absent() { // otherwise the Machine controller sets it, or it is not set
		owned = append(owned, clusterv1.MachineUpToDateCondition)
	}
	if err := k.Writer.TransferStatusOwnership(ctx, k.Live, m, kube.OnlyConditions(owned...)); err != nil {
		return err
	}
	status := map[string]any{}
	if conditions := table.Evaluate(a, reconciler.EvaluateOptionsFor(m, s.Now)); len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return k.Writer.ApplyStatus(ctx, m, status)
}

func (k MachineWriter) delete(ctx context.Context, s OwnerState, a DeleteMachines) error {
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
