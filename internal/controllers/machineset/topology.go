package machineset

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/loop"
)

// The templates of a MachineSet of a managed topology were made for its MachineDeployment, a new one for each rollout.
// They go with the last MachineSet that was made from them (MS-01). A finalizer of its own keeps the MachineSet until
// that is done.

// The actions and the question of that.
type (
	// Protect adds the finalizer.
	Protect struct{}
	// DeleteTemplate deletes a template.
	DeleteTemplate struct{ Kind, Name string }
	// Unprotect removes the finalizer.
	Unprotect struct{}
	// AskUsed asks for the templates that others use.
	AskUsed struct{}
)

func (a Protect) String() string {
	return "add the finalizer of managed topologies: templates go with the last MachineSet that uses them"
}
func (a DeleteTemplate) String() string {
	return fmt.Sprintf("delete %s %s: nothing uses it any more", a.Kind, a.Name)
}
func (a Unprotect) String() string {
	return "remove the finalizer of managed topologies: no template is left to delete"
}
func (a AskUsed) String() string {
	return "templates that other MachineSets and MachineDeployments use"
}

// used are references to templates.
type used map[clusterv1.ContractVersionedObjectReference]bool

// ofTopology reports whether an object belongs to a managed topology.
func ofTopology(o metav1.Object) bool {
	_, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return ok
}

func protected(s Snapshot) bool {
	return controllerutil.ContainsFinalizer(s.Set, clusterv1.MachineSetTopologyFinalizer)
}

// releaseTemplates deletes the templates that nobody else uses, then removes the finalizer. Templates that are not of
// the topology are somebody else's.
func releaseTemplates(s Snapshot, p *loop.Plan) {
	if !protected(s) {
		return
	}
	if s.Used == nil {
		p.Ask = append(p.Ask, AskUsed{})
		return
	}
	for _, t := range []Template{s.Bootstrap, s.Infra} {
		o := t.Object.Unstructured
		if o != nil && ofTopology(o) && o.GetDeletionTimestamp().IsZero() && !s.Used[t.Ref] {
			p.Do(DeleteTemplate{Kind: t.Ref.Kind, Name: t.Ref.Name})
		}
	}
	p.Do(Unprotect{})
}

// readUsed asks the API server itself for the MachineSets and MachineDeployments that stay, whatever their Cluster: a
// template that one of them began to use a moment ago must not go.
func (c *Controller) readUsed(ctx context.Context, s Snapshot) (Snapshot, error) {
	s.Used = used{}
	use := func(spec clusterv1.MachineSpec) {
		s.Used[spec.Bootstrap.ConfigRef], s.Used[spec.InfrastructureRef] = true, true
	}
	sets := &clusterv1.MachineSetList{}
	if err := c.live.List(ctx, sets, client.InNamespace(s.Set.Namespace)); err != nil {
		return s, fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		if o := &sets.Items[i]; o.DeletionTimestamp.IsZero() && o.UID != s.Set.UID {
			use(o.Spec.Template.Spec)
		}
	}
	deployments := &clusterv1.MachineDeploymentList{}
	if err := c.live.List(ctx, deployments, client.InNamespace(s.Set.Namespace)); err != nil {
		return s, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range deployments.Items {
		if o := &deployments.Items[i]; o.DeletionTimestamp.IsZero() {
			use(o.Spec.Template.Spec)
		}
	}
	return s, nil
}

func (c *Controller) deleteTemplate(ctx context.Context, s Snapshot, a DeleteTemplate) error {
	for _, t := range []Template{s.Bootstrap, s.Infra} {
		if t.Ref.Kind == a.Kind && t.Ref.Name == a.Name && t.Object.Unstructured != nil {
			return c.writer.Delete(ctx, t.Object.DeepCopy())
		}
	}
	return nil
}

func (c *Controller) protect(ctx context.Context, set *clusterv1.MachineSet) error {
	return c.writer.Patch(ctx, set, func(o client.Object) {
		controllerutil.AddFinalizer(o, clusterv1.MachineSetTopologyFinalizer)
	})
}

func (c *Controller) unprotect(ctx context.Context, set *clusterv1.MachineSet) error {
	return c.writer.Patch(ctx, set, func(o client.Object) {
		controllerutil.RemoveFinalizer(o, clusterv1.MachineSetTopologyFinalizer)
	})
}
