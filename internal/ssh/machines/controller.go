package machines

import (
	"context"
	"reflect"
	"time"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/bundle"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Name of the controller. Its field manager is "slipway-ssh-machine", which owns fields of existing objects, so it must
// not change.
const Name = "ssh-machine"

// claimIndex is the index of SSHHosts by the claim IDs in their claim and their record.
const claimIndex = Name + ".claim"

// Host is a connected host, as far as this controller uses it.
type Host interface {
	Preflight(ctx context.Context, o remote.PreflightOptions) ([]remote.Finding, error)
	InstallBundle(ctx context.Context, b bundle.Bundle, progress func(done, total int64)) error
	PrepareNode(ctx context.Context, b bundle.Bundle, s remote.NodeSettings) error
	StartBootstrap(ctx context.Context, b remote.Bootstrap) error
	BootstrapProgress(ctx context.Context, claimID string) (remote.Progress, error)
}

// Connector connects to hosts. Package ssh implements it with the pool of package remote.
type Connector interface {
	Connect(ctx context.Context, t remote.Target) (Host, error)
}

// Bundles finds bundles, each with the programs and images of a node. The store of package bundle implements it.
type Bundles interface {
	// Find returns the bundle for a Kubernetes version and an architecture. The error is a fault if there is none.
	Find(kubernetesVersion, architecture string) (bundle.Bundle, error)
}

// Config contains the dependencies and options of the controller. Package ssh fills it in.
type Config struct {
	// Connector connects to hosts.
	Connector Connector
	// Bundles are the bundles of this manager.
	Bundles Bundles
	// Jobs prepares hosts in the background.
	Jobs *jobs.Runner
	// Policy is the operator's configuration.
	Policy policy.Configuration
}

// controller reconciles SSHMachines.
type controller struct {
	Config
	client client.Client
	// secrets reads credentials and bootstrap data without a cache, which would retain them.
	secrets client.Reader
	writer  *kube.Writer
	events  events.EventRecorder
	// rejected is the bootstrap data that cannot be used.
	rejected *rejections
	now      func() time.Time
}

// Add adds the controller to the manager. Package ssh calls it.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{Config: cfg, client: s.Manager.GetClient(), secrets: s.Manager.GetAPIReader(), rejected: newRejections(), now: s.Clock()}
	indexer := s.Manager.GetFieldIndexer()
	if err := watches.IndexByCluster(indexer, Name, &infrav1.SSHMachine{}); err != nil {
		return err
	}
	if err := indexer.IndexField(context.Background(), &infrav1.SSHHost{}, claimIndex, claimIDs); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer, c.events = r.Writer, r.Events
	spec := builder.WithPredicates(predicate.GenerationChangedPredicate{}) // changes of their status are irrelevant
	return s.Builder(Name, &infrav1.SSHMachine{}).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(ofMachine), spec).
		Watches(&clusterv1.Cluster{}, watches.EnqueueMembers(c.client, Name, newList), builder.WithPredicates(watches.ClusterChanged())).
		Watches(&infrav1.SSHCluster{}, handler.EnqueueRequestsFromMapFunc(ofSSHCluster), builder.WithPredicates(membersChanged())).
		Watches(&infrav1.SSHHost{}, handler.EnqueueRequestsFromMapFunc(c.ofHost), builder.WithPredicates(hostChanged())).
		WatchesRawSource(cfg.Jobs.Changed(kind)).
		Complete(&inventory.Fair{Next: r, Workers: s.Concurrency, Now: c.now})
}

func (c *controller) definition() reconciler.Controller[*infrav1.SSHMachine, snapshot] {
	return reconciler.Controller[*infrav1.SSHMachine, snapshot]{
		Name: Name, Finalizer: infrav1.SSHMachineFinalizer,
		New: func() *infrav1.SSHMachine { return &infrav1.SSHMachine{} },
		// identify adds the finalizer before a host is claimed.
		DeferFinalizer: func(o *infrav1.SSHMachine) bool { return o.Spec.ClaimID == "" },
		Observe:        c.observe, Decide: decide, Act: c.act, Report: report, Read: c.readRequested, OnDeleted: c.forget,
	}
}

// forget drops what is remembered about an SSHMachine that no longer exists.
func (c *controller) forget(_ context.Context, key client.ObjectKey) error {
	c.Jobs.Forget(jobs.Key(kind, key))
	c.rejected.drop(key)
	return nil
}

func newList() client.ObjectList { return &infrav1.SSHMachineList{} }

// claimIDs returns the index values of a host.
func claimIDs(o client.Object) (out []string) {
	status := o.(*infrav1.SSHHost).Status
	if status.Claim != nil {
		out = append(out, status.Claim.ClaimID)
	}
	if r := status.Record; r != nil && (len(out) == 0 || out[0] != r.ClaimID) {
		out = append(out, r.ClaimID)
	}
	return out
}

// ofMachine enqueues the SSHMachine that a Machine refers to.
func ofMachine(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.Machine).Spec.InfrastructureRef
	if ref.Kind != kind || ref.APIGroup != infrav1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// ofSSHCluster enqueues the SSHMachines that can hold the virtual IP address of an SSHCluster.
func ofSSHCluster(_ context.Context, o client.Object) (out []reconcile.Request) {
	for _, m := range o.(*infrav1.SSHCluster).Status.VirtualIP.Members {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: m.Machine}})
	}
	return out
}

// membersChanged selects updates of SSHClusters that change the hosts of the virtual IP address.
func membersChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !reflect.DeepEqual(e.ObjectOld.(*infrav1.SSHCluster).Status.VirtualIP, e.ObjectNew.(*infrav1.SSHCluster).Status.VirtualIP)
		},
	}
}

// ofHost enqueues the SSHMachines in the claim and the record of a host. A host without both may be what the machines without
// a host wait for.
func (c *controller) ofHost(ctx context.Context, o client.Object) []reconcile.Request {
	status := o.(*infrav1.SSHHost).Status
	var out []reconcile.Request
	if claim := status.Claim; claim != nil {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}})
	}
	if r := status.Record; r != nil && r.Namespace != "" && r.Name != "" {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: r.Namespace, Name: r.Name}})
	}
	if len(out) > 0 {
		return out
	}
	list := &infrav1.SSHMachineList{}
	if c.client.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return nil
	}
	for i := range list.Items {
		if m := &list.Items[i]; m.Status.HostRef == nil {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		}
	}
	return out
}

// hostChanged selects updates of SSHHosts that can change a decision about a machine or its status.
func hostChanged() predicate.Predicate {
	type relevant struct {
		generation int64
		state      infrav1.SSHHostState
		confirmed  string
		claim      *infrav1.SSHHostClaim
		record     *infrav1.SSHHostRecord
		facts      infrav1.SSHHostFacts
		reachable  condition.Result
	}
	of := func(o client.Object) relevant {
		h := o.(*infrav1.SSHHost)
		return relevant{h.Generation, h.Status.State, h.Status.ConfirmedClaimID, h.Status.Claim, h.Status.Record, h.Status.Facts,
			condition.Mirror(h.Status.Conditions, infrav1.ReachableCondition, condition.Absent())}
	}
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !reflect.DeepEqual(of(e.ObjectOld), of(e.ObjectNew)) || !reflect.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
	}}
}
