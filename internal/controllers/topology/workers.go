package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/topology"
	"github.com/slipwayhq/slipway/internal/topology/lifecycle"
)

// existingWorker is an existing MachineDeployment or MachinePool of the topology.
type existingWorker struct {
	client.Object
	template clusterv1.MachineTemplateSpec
}

// listWorkers lists the MachineDeployments and MachinePools of the topology, oldest first. It and the functions below
// are the step of observe that reads them.
func (c *controller) listWorkers(ctx context.Context, opts ...client.ListOption) (deployments, pools []existingWorker, err error) {
	mds, mps := &clusterv1.MachineDeploymentList{}, &clusterv1.MachinePoolList{}
	if err := c.client.List(ctx, mds, opts...); err != nil {
		return nil, nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	if err := c.client.List(ctx, mps, opts...); err != nil {
		return nil, nil, fmt.Errorf("listing MachinePools: %w", err)
	}
	for i := range mds.Items {
		if md := &mds.Items[i]; topology.IsOwned(md) {
			deployments = append(deployments, existingWorker{md, md.Spec.Template})
		}
	}
	for i := range mps.Items {
		if mp := &mps.Items[i]; topology.IsOwned(mp) {
			pools = append(pools, existingWorker{mp, mp.Spec.Template})
		}
	}
	for _, list := range [][]existingWorker{deployments, pools} {
		slices.SortFunc(list, func(a, b existingWorker) int {
			if order := a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time); order != 0 {
				return order
			}
			return strings.Compare(a.GetName(), b.GetName())
		})
	}
	return deployments, pools, nil
}

// readWorkers reads the workers of the topology into the snapshot; observe calls it.
func (c *controller) readWorkers(ctx context.Context, s *snapshot) error {
	deployments, pools, err := c.listWorkers(ctx, watches.InCluster(Name, client.ObjectKeyFromObject(s.Cluster))...)
	if err != nil {
		return err
	}
	s.Live.Names, s.Live.Deleting = map[string]bool{}, map[topology.Key]bool{}
	if s.Live.Deployments, err = c.assign(ctx, s, deployments, clusterv1.ClusterTopologyMachineDeploymentNameLabel, s.DeploymentTemplates()); err != nil {
		return err
	}
	s.Live.Pools, err = c.assign(ctx, s, pools, clusterv1.ClusterTopologyMachinePoolNameLabel, s.PoolTemplates())
	return err
}

func roleOf(worker client.Object) topology.Role {
	if _, ok := worker.(*clusterv1.MachinePool); ok {
		return topology.Pool
	}
	return topology.Deployment
}

// assign assigns the workers to their names in the topology. A worker whose name is not in the topology is surplus,
// a second worker with the same name is a problem, and a worker that is being deleted is only recorded as such.
func (c *controller) assign(
	ctx context.Context, s *snapshot, workers []existingWorker, label string, made map[string]topology.WorkerTemplates,
) (map[string]topology.LiveWorker, error) {
	out := map[string]topology.LiveWorker{}
	for _, w := range workers {
		s.Live.Names[w.GetName()] = true
		name := w.GetLabels()[label]
		from, wanted := made[name]
		other, twice := out[name]
		switch {
		case !w.GetDeletionTimestamp().IsZero():
			s.Live.Deleting[topology.Key{Role: roleOf(w.Object), Worker: name}] = true
			continue
		case !wanted:
			s.Live.Surplus = append(s.Live.Surplus, w.Object)
			continue
		case twice:
			s.Problems = append(s.Problems, fmt.Sprintf("%s %s and %s are both %s in the topology: delete one of them",
				kindOf(w.Object), other.Object.GetName(), w.GetName(), name))
			continue
		}
		live := topology.LiveWorker{Object: w.Object}
		var err error
		if live.Bootstrap, err = c.readMade(ctx, s, w.template.Spec.Bootstrap.ConfigRef, from.Bootstrap); err != nil {
			return nil, err
		}
		if live.Infrastructure, err = c.readMade(ctx, s, w.template.Spec.InfrastructureRef, from.Infrastructure); err != nil {
			return nil, err
		}
		out[name] = live
	}
	return out, nil
}

// await adds a wait for a worker to be restored. decideParts calls it.
func await(s snapshot, worker topology.Key, p *reconciler.Plan) {
	p.WaitFor(clusterv1.ClusterTopologyReconciledFailedReason, "%s existed and does not any more: restore it, or remove it from the annotation %s of the Cluster "+
		"to have it created again", worker, lifecycle.WorkersAnnotation).For(string(worker.Role), worker.Worker).UntilUserActs()
}

// setWorkersAnnotation sets the annotation with the list of workers, with which the controller recognizes a worker that
// existed and is missing. A backup preserves it. act calls it.
func setWorkersAnnotation(cluster client.Object, workers string) {
	annotations := maps.Clone(cluster.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[lifecycle.WorkersAnnotation] = workers
	if workers == "" {
		delete(annotations, lifecycle.WorkersAnnotation)
	}
	cluster.SetAnnotations(annotations)
}
