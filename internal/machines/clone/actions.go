package clone

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// A Cluster owns the templates of its Machines, so that they are deleted with it. Templates of a managed topology
// are created for one owner of Machines and for each rollout. They are deleted with the last owner that uses them;
// until then a finalizer blocks the deletion of that owner.

// The actions on templates, and the read that is needed before they are deleted. The MachineSet controller plans all of
// them, the MachineDeployment and KubeadmControlPlane controllers only OwnTemplate. Each may be repeated.
type (
	// OwnTemplate makes the Cluster an owner of a template. [Templates.OwnedBy] plans it, and [Act] runs it.
	OwnTemplate struct {
		Ref clusterv1.ContractVersionedObjectReference
	}
	// AddFinalizer adds the finalizer. The MachineSet controller plans it for MachineSets of a managed topology.
	AddFinalizer struct{ Finalizer string }
	// DeleteTemplate deletes a template. [Templates.Release] plans it.
	DeleteTemplate struct {
		Ref clusterv1.ContractVersionedObjectReference
	}
	// RemoveFinalizer removes the finalizer. [Templates.Release] plans it as its last action.
	RemoveFinalizer struct{ Finalizer string }
	// ReadUsedTemplates requests the list of templates that other owners use. The MachineSet controller makes this read
	// with [Usage.Read].
	ReadUsedTemplates struct{}
)

func (a OwnTemplate) String() string {
	return fmt.Sprintf("make the Cluster an owner of %s %s: Machines are created from it", a.Ref.Kind, a.Ref.Name)
}

func (a AddFinalizer) String() string {
	return "add the finalizer of managed topologies: templates are deleted with the last owner that uses them"
}

func (a DeleteTemplate) String() string {
	return fmt.Sprintf("delete %s %s: no other object uses it", a.Ref.Kind, a.Ref.Name)
}

func (a RemoveFinalizer) String() string {
	return "remove the finalizer of managed topologies: no template is left to delete"
}

func (a ReadUsedTemplates) String() string {
	return "templates that other MachineSets and MachineDeployments use"
}

// OwnedBy returns the actions that make the Cluster an owner of the templates that it does not own yet. The controllers
// of standalone MachineSets, of MachineDeployments and of control planes call it in each reconciliation.
func (t Templates) OwnedBy(cluster *clusterv1.Cluster) []reconciler.Action {
	var out []reconciler.Action
	for _, one := range t {
		if one.Exists() && !ownership.OwnedByCluster(one.Object, cluster) {
			out = append(out, OwnTemplate{Ref: one.Ref})
		}
	}
	return out
}

// IsOfTopology reports whether an object belongs to a managed topology. Only then do the MachineSet and
// MachineDeployment controllers set the finalizer of a new MachineSet.
func IsOfTopology(o metav1.Object) bool {
	_, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return ok
}

// Release deletes the templates of a managed topology that no other owner uses, then removes the owner's finalizer. It
// first requests the templates in use; until they are read, used is nil. Templates outside the topology belong to users
// and are not deleted. The MachineSet controller calls it for a MachineSet that is being deleted and has no Machines.
func (t Templates) Release(owner client.Object, finalizer string, used UsedTemplates, p *reconciler.Plan) {
	if !controllerutil.ContainsFinalizer(owner, finalizer) {
		return
	}
	if used == nil {
		p.Reads = append(p.Reads, ReadUsedTemplates{})
		return
	}
	for _, one := range t {
		if one.Exists() && IsOfTopology(one.Object) && one.Object.GetDeletionTimestamp().IsZero() && !used[one.Ref] {
			p.Do(DeleteTemplate{Ref: one.Ref})
		}
	}
	p.Do(RemoveFinalizer{Finalizer: finalizer})
}

// Owner is an owner of Machines, such as a MachineSet, and its templates. The controllers of the owners create it for
// [Act].
type Owner struct {
	Object    client.Object
	Cluster   *clusterv1.Cluster
	Templates Templates
}

// Act runs an action on templates. The controllers of the owners call it for the actions that they planned.
func Act(ctx context.Context, w *kube.Writer, owner Owner, action reconciler.Action) error {
	switch a := action.(type) {
	case OwnTemplate:
		return w.Patch(ctx, owner.Templates.Get(a.Ref).Object.Unstructured, func(o client.Object) {
			ownership.AddOwner(o, ownership.ByCluster(owner.Cluster))
		})
	case DeleteTemplate:
		return w.Delete(ctx, owner.Templates.Get(a.Ref).Object.DeepCopy())
	case AddFinalizer:
		return w.Patch(ctx, owner.Object, func(o client.Object) { controllerutil.AddFinalizer(o, a.Finalizer) })
	case RemoveFinalizer:
		return w.Patch(ctx, owner.Object, func(o client.Object) { controllerutil.RemoveFinalizer(o, a.Finalizer) })
	}
	return fault.New(fault.Bug, "UnknownAction", "%s is no action on templates", action)
}
