package hosted

import (
	"context"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/jobs"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/snapshots"
	"github.com/slipwayhq/slipway/internal/workload"
)

// Name of the controller, in logs, metrics and its field manager slipway-hostedcontrolplane. Existing objects contain
// the field manager, so it must not change.
const Name = "hostedcontrolplane"

const kind = "HostedControlPlane"

// Config contains the dependencies of the controller.
type Config struct {
	// Backends run the control planes.
	Backends backend.Set
	// Gateways finds the addresses at which processes may listen. If nil, they may only listen where the
	// policy permits it.
	Gateways Gateways
	// ReservedPorts are the ports of the management cluster.
	ReservedPorts []uint16
	// Policy restricts users who write objects.
	Policy policy.Configuration
	// Workloads connects to workload clusters.
	Workloads Workloads
	// Stores are the permitted snapshot stores. Jobs runs long tasks.
	Stores snapshots.StoreSettings
	Jobs   *jobs.Runner
}

// Workloads connects to workload clusters. The manager passes its connections.
type Workloads interface {
	// LimitCalls limits the requests to the workload cluster of a Cluster.
	LimitCalls(cluster client.ObjectKey) func(http.RoundTripper) http.RoundTripper
	// Watch sends events of the workload cluster to a controller that uses the source Changed.
	Watch(ctx context.Context, cluster client.ObjectKey, w workload.WatchRequest) error
	Changed(controller string, to workload.ClusterMap) source.Source
}

// controller reconciles HostedControlPlanes. Its methods observe, readRequested and act are called by the driver of
// package reconciler.
type controller struct {
	client client.Client
	// cache contains the Secrets with a cluster label.
	cache        client.Reader
	writer       *kube.Writer
	backends     backend.Set
	gateways     Gateways
	turns        backend.Turns
	addons       addons.Readings
	inspect      func(context.Context, *rest.Config, addons.Params) (addons.State, error)
	reserved     []uint16
	policy       policy.Configuration
	stager       restoreStager
	jobs         *jobs.Runner // nil in tests without restores
	workloads    Workloads    // nil in tests without workload clusters
	applyObjects func(context.Context, *rest.Config, addons.Params) error
	now          func() time.Time
}

// Add adds the controller to the manager, which calls it at its start if the hosted control plane provider is enabled.
func Add(s reconciler.Setup, cfg Config) error {
	c := &controller{
		client: s.Manager.GetClient(), cache: s.Manager.GetCache(), backends: cfg.Backends, gateways: cfg.Gateways,
		reserved: cfg.ReservedPorts, policy: cfg.Policy, workloads: cfg.Workloads, applyObjects: addons.Apply, inspect: addons.Inspect, now: time.Now,
		stager: restoreStager{Retriever: snapshots.Retriever{Client: s.Manager.GetClient(), Stores: cfg.Stores}}, jobs: cfg.Jobs,
	}
	r := reconciler.NewReconciler(s, c.definition())
	c.writer = r.Writer
	return s.Builder(Name, &hostedv1.HostedControlPlane{}).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(requestsForCluster)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(c.requestsForSecret), builder.WithPredicates(watches.OrphanedOrChangedSecrets(watchedPurposes()...))).
		WatchesRawSource(backendEvents(cfg.Backends)).
		WatchesRawSource(cfg.Jobs.Changed(kind)).
		WatchesRawSource(cfg.Workloads.Changed(Name, c.requestsForConnection)).
		Complete(r)
}

func (c *controller) definition() reconciler.Controller[*hostedv1.HostedControlPlane, snapshot] {
	return reconciler.Controller[*hostedv1.HostedControlPlane, snapshot]{
		Name: Name, Finalizer: hostedv1.HostedControlPlaneFinalizer,
		New: func() *hostedv1.HostedControlPlane { return &hostedv1.HostedControlPlane{} },
		WhilePaused: func(p *hostedv1.HostedControlPlane) reconciler.WhilePaused {
			return reconciler.WhilePaused{Reconcile: c.quiesceOf(p) != quiesceRequest{}}
		},
		Observe: c.observe, Decide: decide, Read: c.readRequested, Act: c.act, Report: report, OnDeleted: c.removeOrphan,
	}
}

// removeOrphan removes what remains of a control plane without an object, for example after a move, if this loses no
// data.
func (c *controller) removeOrphan(ctx context.Context, key client.ObjectKey) error {
	return c.backends.RemoveOrphan(ctx, c.policy, key.Namespace+"."+key.Name)
}

// backendOf returns the backend of a control plane.
func (c *controller) backendOf(plane *hostedv1.HostedControlPlane) (backend.Backend, error) {
	return c.backends.Choose(plane.Spec.Backend.Name(), plane.Annotations)
}

// quiesceOf returns the quiesce request of a control plane, if its backend can stop control planes.
func (c *controller) quiesceOf(plane *hostedv1.HostedControlPlane) quiesceRequest {
	if b, err := c.backendOf(plane); err != nil || b.Stop == nil {
		return quiesceRequest{}
	}
	return parseQuiesce(plane)
}

// backendEvents enqueues control planes on events of the backends.
func backendEvents(backends backend.Set) source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, b := range backends {
			cancel := b.ControlPlanes.Subscribe(func(name string) {
				for _, request := range requestsForProcess(name) {
					queue.Add(request)
				}
			})
			context.AfterFunc(ctx, cancel)
		}
		return nil
	})
}

// requestsForCluster enqueues the control plane of a Cluster.
func requestsForCluster(_ context.Context, o client.Object) []reconcile.Request {
	ref := o.(*clusterv1.Cluster).Spec.ControlPlaneRef
	if ref.Kind != kind || ref.APIGroup != hostedv1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}}}
}

// requestsForSecret enqueues the control plane of the Cluster of a Secret.
func (c *controller) requestsForSecret(ctx context.Context, o client.Object) []reconcile.Request {
	cluster := &clusterv1.Cluster{}
	key := client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}
	if key.Name == "" || c.client.Get(ctx, key, cluster) != nil { // a new Cluster enqueues its control plane
		return nil
	}
	return requestsForCluster(ctx, cluster)
}

// requestsForProcess enqueues a control plane by its name in the backends.
func requestsForProcess(name string) []reconcile.Request {
	namespace, name, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}}
}
