package machinedeployment

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines/inplace"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// Name is the name of the controller. Its field manager is "slipway-machinedeployment", which owns the fields of
// existing MachineSets; another name would leave them without an owner.
const Name = "machinedeployment"

// Indexes with which a deployment finds its MachineSets and Machines in the namespace.
const (
	setsByCluster        = "machinedeployment.set.cluster"
	machinesByDeployment = "machinedeployment.machine.deployment"
)

// controller reconciles MachineDeployments.
type controller struct {
	client client.Client
	live   client.Reader // reads from the API server
	refs   *kube.References
	writer *kube.Writer
	// created are MachineSets that the cache does not show yet.
	created kube.Pending
	// begun records the MachineSets that this process created. The MachineSet controller reads it.
	begun    *ownership.CreatedOwners
	settings Settings
	// caller calls the extensions for in-place updates.
	caller inplace.Caller
	scope  watches.Scope
	now    func() time.Time
}

// Settings are the settings of the controller. Package manager fills them.
type Settings struct {
	// Topology makes MachineSets of managed topologies start with the finalizer that their controller would
	// otherwise add (feature gate ClusterTopology).
	Topology bool
	// Policy limits what the controller may do. The zero value allows everything.
	Policy policy.Configuration
	// InPlace updates Machines in place if an extension supports it (feature gate InPlaceUpdates).
	InPlace bool
}

// Add adds the MachineDeployment controller with its indexes and watches to a manager. Package manager calls it when
// the manager starts, and `slipway plan` for a manager in memory. If extensions is nil, no Machine is updated in place.
func Add(s reconciler.Setup, extensions hook.Client, settings Settings) error {
	c := &controller{client: s.Manager.GetClient(), live: s.Manager.GetAPIReader(), settings: settings, begun: s.CreatedOwners, scope: s.Scope(), now: s.Clock()}
	c.caller = inplace.Caller{Client: extensions, Failed: &inplace.FailedCalls{}, Now: c.now}
	for _, i := range indexes() {
		if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), i.kind, i.field, i.value); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.kind, i.field, err)
		}
	}
	if err := watches.IndexByCluster(s.Manager.GetFieldIndexer(), Name, &clusterv1.MachineDeployment{}); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	// Machines do not enqueue a deployment; the status of their MachineSet does. It is counted in the cache that
	// [snapshot] is read from, so that the resulting reconciliation finds these Machines there.
	built, err := s.Builder(Name, &clusterv1.MachineDeployment{}).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(c.ofSet)).
		Watches(&clusterv1.Cluster{}, watches.EnqueueMembers(c.client, Name, newList), builder.WithPredicates(watches.ClusterChanged())).
		Build(r)
	if err != nil {
		return err
	}
	c.refs, err = s.References(Name, built, referrers())
	return err
}

// referrers describes MachineDeployments as the objects that reference provider objects.
func referrers() watches.Referrers {
	return watches.Referrers{New: func() client.Object { return &clusterv1.MachineDeployment{} }, NewList: newList, Refs: references}
}

func (c *controller) definition() reconciler.Controller[*clusterv1.MachineDeployment, snapshot] {
	return reconciler.Controller[*clusterv1.MachineDeployment, snapshot]{
		Name: Name, Finalizer: clusterv1.MachineDeploymentFinalizer,
		New:     func() *clusterv1.MachineDeployment { return &clusterv1.MachineDeployment{} },
		Adopt:   c.enter,
		Observe: c.observe, Decide: decide, Act: c.act, Report: report,
		Read: c.answer,
	}
}

// enter joins a new deployment to its Cluster in the write that adds the finalizer.
func (c *controller) enter(ctx context.Context, d *clusterv1.MachineDeployment) (func(client.Object), error) {
	s := snapshot{Deployment: d}
	if err := c.readCluster(ctx, &s); err != nil || s.Cluster == nil {
		return nil, err
	}
	return func(o client.Object) { ownership.AddToCluster(o, s.Cluster) }, nil
}

func newList() client.ObjectList { return &clusterv1.MachineDeploymentList{} }

func references(o client.Object) []clusterv1.ContractVersionedObjectReference {
	template := o.(*clusterv1.MachineDeployment).Spec.Template.Spec
	return []clusterv1.ContractVersionedObjectReference{template.InfrastructureRef, template.Bootstrap.ConfigRef}
}

// index is one index of the cache. [Add] creates them.
type index struct {
	kind  client.Object
	field string
	value client.IndexerFunc
}

func indexes() []index {
	return []index{
		{&clusterv1.MachineSet{}, setsByCluster, func(o client.Object) []string {
			return []string{o.(*clusterv1.MachineSet).Spec.ClusterName}
		}},
		{&clusterv1.Machine{}, machinesByDeployment, func(o client.Object) []string {
			if name, ok := o.GetLabels()[clusterv1.MachineDeploymentNameLabel]; ok {
				return []string{name}
			}
			return nil
		}},
	}
}

// ofSet enqueues the deployment that controls a MachineSet, or the deployments that may adopt it.
func (c *controller) ofSet(ctx context.Context, o client.Object) []reconcile.Request {
	set := o.(*clusterv1.MachineSet)
	if owner := metav1.GetControllerOf(set); owner != nil {
		if owner.Kind != kind || groupOf(owner.APIVersion) != clusterv1.GroupVersion.Group {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: set.Namespace, Name: owner.Name}}}
	}
	list := &clusterv1.MachineDeploymentList{}
	cluster := client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.ClusterName}
	if err := c.client.List(ctx, list, watches.InCluster(Name, cluster)...); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if adoptable(&list.Items[i], set) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
