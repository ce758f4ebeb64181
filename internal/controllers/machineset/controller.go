package machineset

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/remote"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// Name of the controller.
const Name = "machineset"

// Settings of the controller.
type Settings struct {
	// NoPreflight turns all preflight checks off (the gate MachineSetPreflightChecks, MS-12).
	NoPreflight bool
	// Preflight are the checks to make; none: all (MS-17).
	Preflight []clusterv1.MachineSetPreflightCheck
	// Topology: templates of managed topologies go with the last MachineSet that uses them (the gate ClusterTopology,
	// MS-01).
	Topology bool
}

// makes reports whether a check is made for MachineSets that do not skip it.
func (s Settings) makes(check clusterv1.MachineSetPreflightCheck) bool {
	return !s.NoPreflight && (len(s.Preflight) == 0 || slices.Contains(s.Preflight, check) ||
		slices.Contains(s.Preflight, clusterv1.MachineSetPreflightCheckAll))
}

// Workloads is what the controller needs of the workload clusters.
type Workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
}

// Controller reconciles MachineSets.
type Controller struct {
	client client.Client
	// live reads past the cache.
	live client.Reader
	// templates and planes wake the MachineSets that depend on them; others wake nobody.
	templates, planes, others *kube.References
	workloads                 Workloads
	writer                    *kube.Writer
	settings                  Settings
	scope                     membership.Scope
	now                       func() time.Time
	// intn returns a random number from 0 up to, not including, n.
	intn func(n int) int

	// created and deleted are Machines of which the cache does not show that yet.
	created, deleted kube.Pending

	mu sync.Mutex
	// verified is the generation of each set for which everything was seen to be as it says.
	verified map[types.UID]int64
}

// byCluster is the index of Machines by the name of their Cluster.
const byCluster = "machineset.spec.clusterName"

// Add adds the controller to the manager.
func Add(s loop.Setup, clusters *remote.Clusters, settings Settings) error {
	c := &Controller{
		client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), workloads: clusters, settings: settings,
		scope: s.Scope(), now: time.Now, intn: rand.IntN,
	}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &clusterv1.Machine{}, byCluster, clusterOf); err != nil {
		return fmt.Errorf("index Machines by their Cluster: %w", err)
	}
	if err := s.IndexByCluster(Name, &clusterv1.MachineSet{}); err != nil {
		return err
	}
	r := loop.NewReconciler(s, c.definition())
	c.writer = r.Writer
	built, err := s.Builder(Name, &clusterv1.MachineSet{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(c.ofMachine), builder.WithPredicates(machineMatters())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(c.ofDeployment),
			builder.WithPredicates(deploymentMatters())).
		Watches(&clusterv1.Cluster{}, membership.EnqueueMembers(c.client, Name, newList),
			builder.WithPredicates(predicate.Or(membership.ClusterChanged(), predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(clusters.Changed(Name, c.ofCluster)).
		Build(r)
	if err != nil {
		return err
	}
	newSet := func() client.Object { return &clusterv1.MachineSet{} }
	c.others = kube.NewReferences(c.client, nil).LimitedTo(s.WatchFilter).
		Explaining(s.Manager.GetRESTMapper(), c.live).IndexedBy(s.Manager.GetFieldIndexer(), Name, clusterv1.MachineSetNameLabel)
	if c.templates, err = s.References(Name, built, membership.Referrers{New: newSet, NewList: newList, Refs: templateRefs}); err != nil {
		return err
	}
	c.planes, err = s.References(Name, built, membership.Referrers{New: newSet, NewList: newList, Also: c.ofControlPlane})
	return err
}

func (c *Controller) definition() loop.Controller[*clusterv1.MachineSet, Snapshot] {
	return loop.Controller[*clusterv1.MachineSet, Snapshot]{
		Name: Name, Finalizer: clusterv1.MachineSetFinalizer,
		New:    func() *clusterv1.MachineSet { return &clusterv1.MachineSet{} },
		Urgent: loop.Urgent{Replicas: true},
		Adopt:  c.enter, Observe: c.observe, Decide: Decide, Act: c.act, Report: Report,
		Answer: func(ctx context.Context, s Snapshot, q loop.Question) (Snapshot, error) {
			if _, ok := q.(AskUsed); ok {
				return c.readUsed(ctx, s)
			}
			return c.answer(ctx, s, q.(AskClones))
		},
	}
}

// enter makes a new set belong to its Cluster in the write that gives it its finalizer.
func (c *Controller) enter(ctx context.Context, set *clusterv1.MachineSet) (func(client.Object), error) {
	cluster, err := kube.Cluster(ctx, c.client, clusterKey(set))
	if err != nil || cluster == nil {
		return nil, err
	}
	return func(o client.Object) { join(set, cluster, o) }, nil
}

func (c *Controller) isVerified(set *clusterv1.MachineSet) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.verified[set.UID] == set.Generation && set.Generation > 0
}

// rememberedSets bounds the memory of what was verified; to forget costs one look.
const rememberedSets = 10000

func (c *Controller) verify(set *clusterv1.MachineSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.verified == nil || len(c.verified) > rememberedSets {
		c.verified = map[types.UID]int64{}
	}
	c.verified[set.UID] = set.Generation
}

// forget makes the next pass look at everything again.
func (c *Controller) forget(set *clusterv1.MachineSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.verified, set.UID)
}

func newList() client.ObjectList { return &clusterv1.MachineSetList{} }

func clusterOf(o client.Object) []string { return []string{o.(*clusterv1.Machine).Spec.ClusterName} }

func templateRefs(o client.Object) []clusterv1.ContractVersionedObjectReference {
	spec := o.(*clusterv1.MachineSet).Spec.Template.Spec
	return []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef}
}

func sortedKeys(items map[cloneKey]contract.Object) []cloneKey {
	return slices.SortedFunc(maps.Keys(items), func(a, b cloneKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
}
