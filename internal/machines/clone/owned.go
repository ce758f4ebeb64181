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
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// A template belongs to its Cluster, so that it is deleted with it. Those of a managed topology were created for one owner of
// Machines, new ones for each rollout, and are deleted with the last owner that uses them: a finalizer keeps the owner until then.

// The actions on templates, and the question to ask before they are deleted.
type (
	// OwnTemplate makes the Cluster an owner of a template.
	OwnTemplate struct {
		Ref clusterv1.ContractVersionedObjectReference
	}
	// Protect adds the finalizer.
	Protect struct{ Finalizer string }
	// DeleteTemplate deletes a template.
	DeleteTemplate struct {
		Ref clusterv1.ContractVersionedObjectReference
	}
	// Unprotect removes the finalizer.
	Unprotect struct{ Finalizer string }
	// AskUsed asks for the templates that other owners use.
	AskUsed struct{}
)

// String says what the action does, and why.
func (a OwnTemplate) String() string {
	return fmt.Sprintf("make the Cluster an owner of %s %s: Machines are created from it", a.Ref.Kind, a.Ref.Name)
}

// String says what the action does, and why.
func (a Protect) String() string {
	return "add the finalizer of managed topologies: templates are deleted with the last owner that uses them"
}

// String says what the action does, and why.
func (a DeleteTemplate) String() string {
	return fmt.Sprintf("delete %s %s: no other object uses it", a.Ref.Kind, a.Ref.Name)
}

// String says what the action does, and why.
func (a Unprotect) String() string {
	return "remove the finalizer of managed topologies: no template is left to delete"
}

// String says what is asked.
func (a AskUsed) String() string {
	return "templates that other MachineSets and MachineDeployments use"
}

// OwnedBy makes the Cluster an owner of the templates that it does not own.
func (t Templates) OwnedBy(cluster *clusterv1.Cluster) []loop.Action {
	var out []loop.Action
	for _, one := range t {
		if one.Exists() && !ownership.OwnedByCluster(one.Object, cluster) {
			out = append(out, OwnTemplate{Ref: one.Ref})
		}
	}
	return out
}

// IsOfTopology reports whether an object belongs to a managed topology.
func IsOfTopology(o metav1.Object) bool {
	_, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return ok
}

// Release deletes the templates of a managed topology that no other owner uses, then removes the finalizer of the owner. It asks
// first who uses them: used is nil until then. Templates that are not of the topology belong to a user.
func (t Templates) Release(owner client.Object, finalizer string, used Used, p *loop.Plan) {
	if !controllerutil.ContainsFinalizer(owner, finalizer) {
		return
	}
	if used == nil {
		p.Ask = append(p.Ask, AskUsed{})
		return
	}
	for _, one := range t {
		if one.Exists() && IsOfTopology(one.Object) && one.Object.GetDeletionTimestamp().IsZero() && !used[one.Ref] {
			p.Do(DeleteTemplate{Ref: one.Ref})
		}
	}
	p.Do(Unprotect{Finalizer: finalizer})
}

// Owner is an owner of Machines whose templates are acted on.
type Owner struct {
	Object    client.Object
	Cluster   *clusterv1.Cluster
	Templates Templates
}

// Act carries out an action on templates.
func Act(ctx context.Context, w *kube.Writer, owner Owner, action loop.Action) error {
	switch a := action.(type) {
	case OwnTemplate:
		return w.Patch(ctx, owner.Templates.Of(a.Ref).Object.Unstructured, func(o client.Object) {
			ownership.Own(o, ownership.ByCluster(owner.Cluster))
		})
	case DeleteTemplate:
		return w.Delete(ctx, owner.Templates.Of(a.Ref).Object.DeepCopy())
	case Protect:
		return w.Patch(ctx, owner.Object, func(o client.Object) { controllerutil.AddFinalizer(o, a.Finalizer) })
	case Unprotect:
		return w.Patch(ctx, owner.Object, func(o client.Object) { controllerutil.RemoveFinalizer(o, a.Finalizer) })
	}
	return fault.New(fault.Bug, "UnknownAction", "%s is no action on templates", action)
}
