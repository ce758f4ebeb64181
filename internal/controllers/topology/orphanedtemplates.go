package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// This file deletes machine templates that nothing references, at the end of each plan ([decide]), also if the manager
// stopped between the writes of a replacement. While a MachineSet uses a template, it is not deleted; the MachineSet
// controller deletes the templates that it no longer needs.

// askUsed requests a live read of the templates in use. decideOrphans puts it into the plan, and the Read function of
// the controller (act.go) performs it.
type askUsed struct{}

func (q askUsed) String() string { return "which templates MachineSets and MachineDeployments use" }

// readOwned lists the machine templates that were created for the topology. observe calls it.
func (c *controller) readOwned(ctx context.Context, s *snapshot) error {
	var kinds []schema.GroupKind
	add := func(ref clusterv1.ClusterClassTemplateReference) {
		if kind := ref.GroupVersionKind().GroupKind(); ref.IsDefined() && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	add(s.Class.Spec.ControlPlane.MachineInfrastructure.TemplateRef)
	for _, md := range s.Class.Spec.Workers.MachineDeployments {
		add(md.Bootstrap.TemplateRef)
		add(md.Infrastructure.TemplateRef)
	}
	labels := map[string]string{clusterv1.ClusterNameLabel: s.Cluster.Name, clusterv1.ClusterTopologyOwnedLabel: ""}
	for _, kind := range kinds {
		list, err := c.refs.List(ctx, kind.Group, kind.Kind, s.Cluster.Namespace, labels)
		if f := fault.As(err); f != nil && f.Kind == fault.Invalid {
			continue // the read of the class's templates reports the problem
		}
		if err != nil {
			return err
		}
		s.Owned = append(s.Owned, list...)
	}
	slices.SortFunc(s.Owned, func(a, b contract.Object) int {
		return strings.Compare(a.GetKind()+" "+a.GetName(), b.GetKind()+" "+b.GetName())
	})
	return c.readSets(ctx, s)
}

// readSets reads which templates the MachineSets of the Cluster use.
func (c *controller) readSets(ctx context.Context, s *snapshot) error {
	sets := &clusterv1.MachineSetList{}
	if err := c.client.List(ctx, sets, watches.InCluster(Name, client.ObjectKeyFromObject(s.Cluster))...); err != nil {
		return fmt.Errorf("listing MachineSets: %w", err)
	}
	s.UsedBySets = clone.UsedTemplates{}
	for i := range sets.Items {
		template := sets.Items[i].Spec.Template.Spec
		s.UsedBySets[template.Bootstrap.ConfigRef], s.UsedBySets[template.InfrastructureRef] = true, true
	}
	return nil
}

// decideOrphans deletes the templates that neither the control plane nor a worker uses or will use. decideParts calls
// it.
func decideOrphans(s snapshot, desired topology.Desired, p *reconciler.Plan) {
	used := clone.UsedTemplates{}
	for _, part := range desired.Parts {
		used[topology.Reference(part.Want)] = true
	}
	for _, o := range s.Templates {
		if o.Unstructured != nil && o.GetNamespace() == s.Cluster.Namespace {
			used[topology.Reference(o.Unstructured)] = true
		}
	}
	for _, o := range s.Owned {
		ref := topology.Reference(o.Unstructured)
		_, ofWorker := o.GetLabels()[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
		switch {
		case used[ref] || !ownership.Owns(s.Cluster, o) || !o.GetDeletionTimestamp().IsZero() || ofWorker && s.UsedBySets[ref]:
		case ofWorker && s.Used == nil:
			p.Reads = append(p.Reads, askUsed{})
			return
		case !ofWorker || !s.Used[ref]:
			p.Do(deleteObject{Object: o.Unstructured, Kind: o.GetKind(), Name: o.GetName(), Why: "nothing uses it"})
		}
	}
}
