package loop

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Setup is what the manager gives to every controller.
type Setup struct {
	Manager ctrl.Manager
	// WatchFilter, where set, limits the controllers to objects with the label cluster.x-k8s.io/watch-filter of this
	// value, in Clusters with that label; see [Scope].
	WatchFilter string
	// Concurrency is how many objects of the kind are reconciled at once (FL-02).
	Concurrency int
	// Pace is the least time between two writes of an object's status of which nobody waits for the second
	// (FG-03). Zero: every change is written at once.
	Pace time.Duration
	// Rest is the least time between the beginnings of two passes over an object (FG-03). Zero: every event makes one at
	// once.
	Rest time.Duration
	// NormalEvents limits the events of type Normal of all controllers that have it; nil: no limit.
	NormalEvents *rate.Limiter
	// Limits are what the API accepts as the status of each kind; nil: nothing is known of it.
	Limits kube.Limits
	// Metrics of all controllers; nil: none.
	Metrics *Metrics
	// Tracer records a span for every pass; nil: none.
	Tracer trace.Tracer
	// Work is told what is being reconciled; nil: nobody is.
	Work Work
}

// Work is told what is being reconciled, so that after a crash it is known what the process was doing.
type Work interface {
	// Begin is called before an object is reconciled, done in the end. An object that is set aside is not reconciled
	// before that much time has passed; done is nil then.
	Begin(kind schema.GroupVersionKind, o client.Object) (done func(), aside time.Duration)
}

// Builder starts the wiring of a controller for the kind of o.
func (s Setup) Builder(name string, o client.Object) *builder.Builder {
	return ctrl.NewControllerManagedBy(s.Manager).Named(name).WithOptions(Options(s.Concurrency)).
		For(o, builder.WithPredicates(s.Filter()))
}

// Filter is the predicate of the watch filter. It only spares reconciliations: what an object is not the manager's for is
// looked at again at the beginning of each.
func (s Setup) Filter() predicate.Predicate {
	scope := Scope{WatchFilter: s.WatchFilter}
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return scope.hasLabel(o) })
}

// NewReconciler returns the driver of c with the manager's client, writer and events.
func NewReconciler[O Object, S any](s Setup, c Controller[O, S]) *Reconciler[O, S] {
	kind, _ := apiutil.GVKForObject(c.New(), s.Manager.GetScheme()) // of a kind that is not in the scheme nothing can be read
	return &Reconciler[O, S]{
		Controller: c, Client: s.Manager.GetClient(), Writer: s.Writer(c.Name), Live: s.Manager.GetAPIReader(), Scope: s.Scope(),
		Limits: s.Limits,
		work:   s.Work, kind: kind,
		Events: s.Manager.GetEventRecorder(kube.Prefix + c.Name),
		pacer:  pacer{window: s.Pace}, rests: rests{least: s.Rest}, normal: s.NormalEvents, metrics: s.Metrics, tracer: s.Tracer,
	}
}

// Writer returns the writer of the controller with this name, whose applies are counted.
func (s Setup) Writer(controller string) *kube.Writer {
	w := kube.NewWriter(s.Manager.GetClient(), controller)
	if s.Metrics != nil {
		w.OnApply(func(kind string, sent bool) { s.Metrics.applied(controller, kind, sent) })
	}
	return w
}

// OfCluster wakes every object of a kind that belongs to the Cluster, for watches on Clusters by a controller that has
// indexed the kind by Cluster.
func OfCluster(c client.Reader, controller string, newList func() client.ObjectList) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
		list := newList()
		if err := c.List(ctx, list, InCluster(controller, client.ObjectKeyFromObject(cluster))...); err != nil {
			return nil
		}
		return Requests(list)
	})
}

// OrphanedSecrets is the predicate for watches on Secrets of clusters by those who own them: it lets through the ones that
// have lost their owner (OR-01).
func OrphanedSecrets() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		secret, ok := o.(*corev1.Secret)
		return ok && secret.Type == clusterv1.ClusterSecretType && metav1.GetControllerOfNoCopy(secret) == nil
	})
}

// ClusterMatters is the predicate for watches on Clusters by the controllers of what belongs to them: it lets
// through what changes what they may do, and drops the rest of the status.
func ClusterMatters() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
			if !ok || !ok2 {
				return false
			}
			return before.Generation != after.Generation ||
				before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
				isTrue(before.Status.Initialization.InfrastructureProvisioned) != isTrue(after.Status.Initialization.InfrastructureProvisioned) ||
				isTrue(before.Status.Initialization.ControlPlaneInitialized) != isTrue(after.Status.Initialization.ControlPlaneInitialized)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func isTrue(b *bool) bool { return b != nil && *b }
