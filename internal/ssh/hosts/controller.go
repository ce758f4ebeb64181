package hosts

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
	"github.com/slipwayhq/slipway/internal/ssh/remote"
)

// Name of the controller. Its field manager is "slipway-ssh-host", which owns fields of existing objects, so it must
// not change.
const Name = "ssh-host"

// kind of the objects that the controller reconciles.
const kind = "SSHHost"

// machineIndex is the index of SSHHosts by the SSHMachine in their claim, or in the record on a host without a claim.
const machineIndex = Name + ".machine"

// Host is a connected host, as far as this controller uses it.
type Host interface {
	Facts(ctx context.Context) (remote.Facts, error)
	Preflight(ctx context.Context, o remote.PreflightOptions) ([]remote.Finding, error)
	ReadRecord(ctx context.Context) (*remote.Record, error)
	WriteRecord(ctx context.Context, r remote.Record) error
	DeleteRecord(ctx context.Context, claimID string) error
	Reset(ctx context.Context) ([]remote.Leftover, error)
	RemoveBundles(ctx context.Context) error
}

// Connector connects to hosts. Package ssh implements it with the pool of package remote.
type Connector interface {
	Connect(ctx context.Context, t remote.Target) (Host, error)
}

// Bundles names the Kubernetes versions of bundles. Package ssh implements it.
type Bundles interface {
	// Version returns the version of the bundle with the digest, empty if it is unknown.
	Version(digest string) string
}

// Workloads connects to workload clusters. Clusters of package workload implements it.
type Workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	// Nodes returns the Nodes with exactly this provider ID.
	Nodes(ctx context.Context, cluster client.ObjectKey, providerID string) ([]corev1.Node, error)
}

// Config contains the dependencies and options of the controller.
type Config struct {
	// Instance names the management cluster in the records on hosts.
	Instance string
	// Connector connects to hosts.
	Connector Connector
	// Workloads connects to the clusters of lost machines.
	Workloads Workloads
	// Bundles are the bundles of this manager.
	Bundles Bundles
	// Jobs cleans hosts in the background.
	Jobs *jobs.Runner
	// Policy is the operator's configuration.
	Policy policy.Configuration
}

// controller reconciles SSHHosts.
type controller struct {
	Config
	client client.Client
	// secrets reads credentials without a cache, which would retain them.
	secrets client.Reader
	writer  *kube.Writer
	events  events.EventRecorder
	checks  *checks
	now     func() time.Time
}

// Add adds the controller to the manager. Package ssh calls it with the configuration of the provider.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{Config: cfg, client: s.Manager.GetClient(), secrets: s.Manager.GetAPIReader(), checks: newChecks(), now: s.Clock()}
	if err := s.Manager.GetFieldIndexer().IndexField(context.Background(), &infrav1.SSHHost{}, machineIndex, machineOf); err != nil {
		return err
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer, c.events = r.Writer, r.Events
	return s.Builder(Name, &infrav1.SSHHost{}).
		Watches(&infrav1.SSHMachine{}, handler.EnqueueRequestsFromMapFunc(c.ofMachine), builder.WithPredicates(machineChanged())).
		WatchesRawSource(cfg.Jobs.Changed(kind)).
		Complete(&inventory.Fair{Next: r, Workers: s.Concurrency, Namespace: c.namespaceOf, Now: c.now})
}

// namespaceOf returns the namespace whose share of the workers a host takes.
func (c *controller) namespaceOf(ctx context.Context, req reconcile.Request) string {
	o, err := infrastructure.ReadObject(ctx, c.client, req.Namespace, req.Name, &infrav1.SSHHost{})
	if err != nil || o == nil {
		return req.Namespace
	}
	return inventory.NamespaceOf(o)
}

func (c *controller) definition() reconciler.Controller[*infrav1.SSHHost, snapshot] {
	return reconciler.Controller[*infrav1.SSHHost, snapshot]{
		Name: Name, Finalizer: infrav1.SSHHostFinalizer,
		New:     func() *infrav1.SSHHost { return &infrav1.SSHHost{} },
		Observe: c.observe, Decide: decide, Act: c.act, Report: report, Read: c.readRequested, OnDeleted: c.forget,
	}
}

// forget drops the last check and the last job of a host whose object no longer exists.
func (c *controller) forget(_ context.Context, key client.ObjectKey) error {
	c.checks.drop(key)
	c.Jobs.Forget(jobs.Key(kind, key))
	return nil
}

// machineOf returns the index value of a host.
func machineOf(o client.Object) []string {
	status := o.(*infrav1.SSHHost).Status
	switch {
	case status.Claim != nil:
		return []string{status.Claim.Namespace + "/" + status.Claim.Name}
	case status.Record != nil:
		return []string{status.Record.Namespace + "/" + status.Record.Name}
	}
	return nil
}

// ofMachine enqueues the SSHHost that an SSHMachine has claimed.
func (c *controller) ofMachine(ctx context.Context, o client.Object) []reconcile.Request {
	list := &infrav1.SSHHostList{}
	if c.client.List(ctx, list, client.MatchingFields{machineIndex: o.GetNamespace() + "/" + o.GetName()}) != nil {
		return nil
	}
	return watches.Requests(list)
}

// machineChanged selects events that can change the state of a host: its SSHMachine appears, disappears or is provisioned.
func machineChanged() predicate.Predicate {
	provisioned := func(o client.Object) bool {
		return ptr.Deref(o.(*infrav1.SSHMachine).Status.Initialization.Provisioned, false)
	}
	return predicate.Funcs{
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return provisioned(e.ObjectOld) != provisioned(e.ObjectNew) },
	}
}
