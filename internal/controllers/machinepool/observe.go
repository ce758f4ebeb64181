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
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Snapshot is everything that a decision about a MachinePool looks at.
type Snapshot struct {
	Now time.Time
	// Policy is what the operator allows; the zero value: everything.
	Policy policy.Configuration
	Pool   *clusterv1.MachinePool
	// Cluster is nil where it does not exist.
	Cluster *clusterv1.Cluster
	// Bootstrap is nil where the pool has no bootstrap config, or it does not exist.
	Bootstrap *contract.BootstrapConfigView
	// Infra is nil where it does not exist.
	Infra *contract.InfraMachinePoolView
	// BootstrapProblem and InfraProblem say what a person has to change before the reference can be read.
	BootstrapProblem, InfraProblem string
	// InfraMachines are the infrastructure machines of the pool, sorted by name; none where the
	// infrastructure has no kind for them.
	InfraMachines []contract.Object
	// KindProblem says what a person has to change before the infrastructure machines can be read: they are not known then.
	KindProblem string
	// Machines of the pool, sorted by name.
	Machines []clusterv1.Machine
	// Nodes of the pool: those whose provider ID is in the list, and those that were in it before.
	Nodes Nodes
}

// Nodes is what is known of the workload cluster's Nodes.
type Nodes struct {
	// Known is false where the workload cluster could not be asked; Problem then says why.
	Known   bool
	Problem string
	// Again is when to ask again a workload cluster that answers, though slowly: its connection does not change, so
	// nothing wakes us. Zero: a watch will.
	Again time.Duration
	// Items by provider ID.
	Items map[string]corev1.Node
	// Retired are Nodes that the status refers to although their instance is not in the list any more.
	Retired []corev1.Node
}

func (c *Controller) observe(ctx context.Context, pool *clusterv1.MachinePool) (Snapshot, error) {
	s := Snapshot{Now: c.now(), Policy: c.policy, Pool: pool}
	steps := []func(context.Context, *Snapshot) error{
		c.readCluster, c.readBootstrap, c.readInfra, c.readMachines, c.readNodes,
	}
	for _, step := range steps {
		if err := step(ctx, &s); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (c *Controller) readCluster(ctx context.Context, s *Snapshot) (err error) {
	s.Cluster, err = kube.Cluster(ctx, c.client, clusterKey(s.Pool))
	return err
}

func (c *Controller) readBootstrap(ctx context.Context, s *Snapshot) error {
	o, problem, err := c.refs.Look(ctx, s.Pool, s.Pool.Spec.Template.Spec.Bootstrap.ConfigRef)
	s.Bootstrap, s.BootstrapProblem = kube.View(o, contract.BootstrapConfig), problem
	return err
}

func (c *Controller) readInfra(ctx context.Context, s *Snapshot) error {
	ref := s.Pool.Spec.Template.Spec.InfrastructureRef
	o, problem, err := c.refs.Look(ctx, s.Pool, ref)
	s.Infra, s.InfraProblem = kube.View(o, contract.InfraMachinePool), problem
	if s.Infra == nil {
		return err
	}
	kind, ok := s.Infra.MachineKind.Get()
	if !ok || kind == "" {
		return nil
	}
	s.InfraMachines, err = c.refs.List(ctx, ref.APIGroup, kind, s.Pool.Namespace, memberLabels(s.Pool))
	if f := fault.As(err); f != nil && f.Kind == fault.Invalid {
		s.KindProblem = fmt.Sprintf("%s %s names the kind of its machines in status.infrastructureMachineKind: %s", ref.Kind, ref.Name, f.Message)
		return nil
	}
	sort.Slice(s.InfraMachines, func(i, j int) bool { return s.InfraMachines[i].GetName() < s.InfraMachines[j].GetName() })
	return err
}

func (c *Controller) readMachines(ctx context.Context, s *Snapshot) error {
	list := &clusterv1.MachineList{}
	err := c.client.List(ctx, list, client.InNamespace(s.Pool.Namespace), client.MatchingLabels(memberLabels(s.Pool)),
		client.MatchingFields{membership.ClusterField(Name): s.Pool.Spec.ClusterName})
	if err != nil {
		return fmt.Errorf("listing Machines of the pool: %w", err)
	}
	s.Machines = list.Items
	sort.Slice(s.Machines, func(i, j int) bool { return s.Machines[i].Name < s.Machines[j].Name })
	return nil
}

// infraProblem says what has to change before the infrastructure can be gone by: the reference to it, a field that cannot be
// read, or the kind of its machines. Empty: nothing.
func infraProblem(s Snapshot) string {
	if s.InfraProblem != "" || s.Infra == nil {
		return s.InfraProblem
	}
	if err := s.Infra.Err(); err != nil {
		return unreadable(s.Pool.Spec.Template.Spec.InfrastructureRef, err)
	}
	return s.KindProblem
}

// bootstrapProblem says the same of the bootstrap config.
func bootstrapProblem(s Snapshot) string {
	if s.BootstrapProblem != "" || s.Bootstrap == nil {
		return s.BootstrapProblem
	}
	if err := s.Bootstrap.Err(); err != nil {
		return unreadable(s.Pool.Spec.Template.Spec.Bootstrap.ConfigRef, err)
	}
	return ""
}

func unreadable(ref clusterv1.ContractVersionedObjectReference, err error) string {
	return fmt.Sprintf("%s %s reports what its contract does not allow: %v", ref.Kind, ref.Name, err)
}

// providerIDs is what the infrastructure reports, or what was taken over from it where it is gone or not readable.
func providerIDs(s Snapshot) []string {
	if s.Infra == nil || s.Infra.ProviderIDList.Err() != nil {
		return s.Pool.Spec.ProviderIDList
	}
	return s.Infra.ProviderIDList.Or(nil)
}

// memberLabels select the Machines and the infrastructure machines of the pool.
func memberLabels(pool *clusterv1.MachinePool) map[string]string {
	return map[string]string{
		clusterv1.ClusterNameLabel:     pool.Spec.ClusterName,
		clusterv1.MachinePoolNameLabel: contract.LabelValue(pool.Name),
	}
}

func clusterKey(pool *clusterv1.MachinePool) client.ObjectKey {
	return client.ObjectKey{Namespace: pool.Namespace, Name: pool.Spec.ClusterName}
}

func isTrue(b *bool) bool { return b != nil && *b }
