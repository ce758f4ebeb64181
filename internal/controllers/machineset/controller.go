package machineset

import (
	"context"
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Name is the name of the controller. Its field manager for MachineSets is "slipway-machineset", which owns fields of
// existing objects; Machines have another one (machines.go).
const Name = "machineset"

// Settings are the settings of the controller. Package manager fills them from the flags of the manager.
type Settings struct {
	// NoPreflight disables all preflight checks (feature gate MachineSetPreflightChecks).
	NoPreflight bool
	// Preflight lists the checks to run. If it is empty, all run.
	Preflight []clusterv1.MachineSetPreflightCheck
	// Topology deletes the templates of managed topologies with the last MachineSet that uses them (feature gate
	// ClusterTopology).
	Topology bool
	// InPlace updates Machines in place (feature gate InPlaceUpdates).
	InPlace bool
	// Policy limits what the controller may do. The zero value allows everything.
	Policy policy.Configuration
}

// runs reports whether a check runs for MachineSets that do not skip it. preflight calls it for each check.
func (s Settings) runs(check clusterv1.MachineSetPreflightCheck) bool {
	return !s.NoPreflight && (len(s.Preflight) == 0 || slices.Contains(s.Preflight, check) ||
		slices.Contains(s.Preflight, clusterv1.MachineSetPreflightCheckAll))
}

// controller reconciles MachineSets.
type controller struct {
	client client.Client
	// live reads from the API server.
	live client.Reader
	used *clone.Usage
	// Changes of templates and controlPlanes enqueue the MachineSets that depend on them. Changes of clones enqueue
	// nothing.
	templates, controlPlanes, clones *kube.References
	workloads                        machines.Workloads
	writer                           *kube.Writer
	settings                         Settings
	// begun records the MachineSets that this process created. They do not need to wait until the workload cluster
	// confirms that they have no Machines.
	begun *ownership.CreatedOwners
	scope watches.Scope
	now   func() time.Time
	// intn returns a random number in [0, n).
	intn func(n int) int

	// pending has the Machines whose creation or deletion the cache does not show yet. verified has the MachineSets whose
	// Machines and clones were completely compared.
	pending  machines.Pending
	verified machines.Verified
}

// byCluster is the index of Machines by the name of their Cluster.
const byCluster = "machineset.spec.clusterName"

// Add adds the MachineSet controller with its indexes and watches to a manager. Package manager calls it when the
// manager starts, and `slipway plan` for a manager in memory.
func Add(s reconciler.Setup, clusters workload.Workloads, settings Settings) error {
	c := &controller{
		client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), used: clone.NewUsage(s.Manager.GetAPIReader()), workloads: clusters, settings: settings, begun: s.CreatedOwners,
		scope: s.Scope(), now: s.Clock(), intn: s.Random(),
	}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Machine{}, byCluster, clusterOf); err != nil {
		return fmt.Errorf("index Machines by their Cluster: %w", err)
	}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &clusterv1.MachineSet{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	built, err := s.Builder(Name, &clusterv1.MachineSet{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMachine), builder.WithPredicates(machines.Changed())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(c.ofDeployment),
			builder.WithPredicates(deploymentMatters())).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(senders), builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&clusterv1.Cluster{}, watches.EnqueueMembers(c.client, Name, newList),
			builder.WithPredicates(predicate.Or(watches.ClusterChanged(), predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(clusters.Changed(Name, c.ofCluster)).
		Build(r)
	if err != nil {
		return err
	}
	c.clones = kube.NewReferences(c.client, nil).LimitedTo(s.WatchFilter).
		WithDiagnostics(s.Manager.GetRESTMapper(), c.live).IndexedBy(s.Manager.GetFieldIndexer(), Name, clusterv1.MachineSetNameLabel)
	if c.templates, err = s.References(Name, built, referrers()); err != nil {
		return err
	}
	c.controlPlanes, err = s.References(Name, built, watches.Referrers{
		New: func() client.Object { return &clusterv1.MachineSet{} }, NewList: newList, Also: c.ofControlPlane,
	})
	return err
}

func (c *controller) definition() reconciler.Controller[*clusterv1.MachineSet, snapshot] {
	return reconciler.Controller[*clusterv1.MachineSet, snapshot]{
		Name: Name, Finalizer: clusterv1.MachineSetFinalizer,
		New:   func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} },
		Adopt: c.enter, Observe: c.observe, Decide: decide, Act: c.act, Report: report,
		Read: func(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
			if _, ok := q.(clone.ReadUsedTemplates); ok {
				used, err := c.used.Read(ctx, s.Set)
				s.Used = used
				return s, err
			}
			return c.readClones(ctx, s)
		},
	}
}

// enter joins a new MachineSet to its Cluster in the write that adds the finalizer.
func (c *controller) enter(ctx context.Context, set *clusterv1.MachineSet) (func(client.Object), error) {
	cluster, err := kube.GetCluster(ctx, c.client, clusterKey(set))
	if err != nil || cluster == nil {
		return nil, err
	}
	return func(o client.Object) { join(set, cluster, o) }, nil
}

func newList() client.ObjectList { return &clusterv1.MachineSetList{} }

func clusterOf(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ClusterName} }

// referrers describes MachineSets as the objects that reference templates.
func referrers() watches.Referrers {
	return watches.Referrers{New: func() client.Object { return &clusterv1.MachineSet{} }, NewList: newList, Refs: templateRefs}
}

func templateRefs(o client.Object) []clusterv1.ContractVersionedObjectReference {
	spec := o.(*clusterv1.MachineSet).Spec.Template.Spec
	return []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef}
}
