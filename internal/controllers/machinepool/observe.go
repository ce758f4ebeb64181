package machinepool

import (
	"context"
	"fmt"
	"sort"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// snapshot is the input of all decisions about a MachinePool. observe fills it.
type snapshot struct {
	Now time.Time
	Settings
	Pool *clusterv1.MachinePool
	// Cluster is nil if it does not exist.
	Cluster *clusterv1.Cluster
	// Bootstrap and Infra are the referenced objects. Infra has a Problem if its machines cannot be read.
	Bootstrap contract.BootstrapConfigView
	Infra     contract.InfraMachinePoolView
	// InfraMachines are the infrastructure machines of the pool, sorted by name. The list is empty if the
	// infrastructure has no kind for them.
	InfraMachines []contract.Object
	// Machines are the Machines of the pool, sorted by name.
	Machines []clusterv1.Machine
	// Nodes are the Nodes whose provider ID is, or previously was, in the pool's provider ID list.
	Nodes observedNodes
}

// observedNodes is the observed state of the pool's Nodes. readNodes fills it.
type observedNodes struct {
	// Known is false if the workload cluster could not be read; Problem is the reason.
	Known   bool
	Problem string
	// RetryAfter is the retry delay for a workload cluster that is connected but slow. Its connection does not change,
	// so no event enqueues the pool. Zero means that a watch does.
	RetryAfter time.Duration
	// Items contains the Nodes by provider ID.
	Items map[string]corev1.Node
	// Duplicates contains the names of Nodes that share a provider ID, by provider ID.
	Duplicates map[string][]string
	// Retired are Nodes in the status of the pool whose provider ID is not in the provider ID list any more.
	Retired []corev1.Node
}

// observe reads the snapshot of a MachinePool. Package reconciler calls it at the beginning of each reconciliation.
// readNodes is the last step, because it uses the Cluster and the provider IDs that earlier steps read.
func (c *controller) observe(ctx context.Context, pool *clusterv1.MachinePool) (snapshot, error) {
	s := snapshot{Now: c.now(), Settings: c.settings, Pool: pool}
	steps := []func(context.Context, *snapshot) error{
		c.readCluster, c.readBootstrap, c.readInfra, c.readMachines, c.readNodes,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *controller) readCluster(ctx context.Context, s *snapshot) (err error) {
	s.Cluster, err = kube.GetCluster(ctx, c.client, clusterKey(s.Pool))
	return err
}

func (c *controller) readBootstrap(ctx context.Context, s *snapshot) error {
	o, err := c.refs.GetReferenced(ctx, s.Pool, s.Pool.Spec.Template.Spec.Bootstrap.ConfigRef)
	s.Bootstrap = contract.BootstrapConfig(o)
	return err
}

func (c *controller) readInfra(ctx context.Context, s *snapshot) error {
	ref := s.Pool.Spec.Template.Spec.InfrastructureRef
	o, err := c.refs.GetReferenced(ctx, s.Pool, ref)
	s.Infra = contract.InfraMachinePool(o)
	if err != nil {
		return err
	}
	kind, ok := s.Infra.MachineKind.Get()
	if !ok || kind == "" {
		return nil
	}
	s.InfraMachines, err = c.refs.List(ctx, ref.APIGroup, kind, s.Pool.Namespace, memberLabels(s.Pool))
	if f := fault.As(err); f != nil && f.Kind == fault.Invalid {
		s.Infra.Problem = fmt.Sprintf("%s %s names the kind of its machines in status.infrastructureMachineKind: %s", ref.Kind, ref.Name, f.Message)
		return nil
	}
	sort.Slice(s.InfraMachines, func(i, j int) bool { return s.InfraMachines[i].GetName() < s.InfraMachines[j].GetName() })
	return err
}

func (c *controller) readMachines(ctx context.Context, s *snapshot) error {
	list := &clusterv1.MachineList{}
	err := c.client.List(ctx, list, client.InNamespace(s.Pool.Namespace), client.MatchingLabels(memberLabels(s.Pool)),
		client.MatchingFields{watches.ClusterField(Name): s.Pool.Spec.ClusterName})
	if err != nil {
		return fmt.Errorf("listing Machines of the pool: %w", err)
	}
	s.Machines = list.Items
	sort.Slice(s.Machines, func(i, j int) bool { return s.Machines[i].Name < s.Machines[j].Name })
	return nil
}

// memberLabels returns the labels of the pool's Machines and infrastructure machines.
func memberLabels(pool *clusterv1.MachinePool) map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel:     pool.Spec.ClusterName,
		clusterv1.MachinePoolNameLabel: contract.LabelValue(pool.Name),
	}
}

func clusterKey(pool *clusterv1.MachinePool) client.ObjectKey {
	return client.ObjectKey{Namespace: pool.Namespace, Name: pool.Spec.ClusterName}
}
