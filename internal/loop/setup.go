package loop

import (
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kube/statuslimits"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/pacing"
)

// Setup is what the manager gives to every controller.
type Setup struct {
	Manager ctrl.Manager
	// Process is the manager with the identity of the process, where Manager has that of a provider; nil: they are the same. It
	// reports on objects that the provider's identity may not write any more.
	Process ctrl.Manager
	// WatchFilter, where set, limits the controllers to objects with the label cluster.x-k8s.io/watch-filter of this
	// value, in Clusters with that label; see [membership.Scope].
	WatchFilter string
	// Concurrency is how many objects of the kind are reconciled at once.
	Concurrency int
	// StatusInterval is the least time between two writes of an object's status neither of which is [Urgent]. Zero: every
	// change is written at once.
	StatusInterval time.Duration
	// ReconcileInterval is the least time between the beginnings of two reconciliations of an object. Zero: every event
	// starts one at once.
	ReconcileInterval time.Duration
	// NormalEvents limits the events of type Normal of all controllers that share it; nil: no limit.
	NormalEvents *rate.Limiter
	// Written is what all controllers that share it have written; nil: each knows of its own writes alone.
	Written *kube.Writes
	// Begun are the owners that all controllers that share it have created; nil: none are known.
	Begun *ownership.Begun
	// Limits are what the API accepts as the status of each kind; nil: unknown.
	Limits statuslimits.Limits
	// Metrics of all controllers; nil: none.
	Metrics *Metrics
	// Tracer records a span for every reconciliation; nil: none.
	Tracer trace.Tracer
	// Work is notified of what is being reconciled; may be nil.
	Work Work
	// Plans keeps the last plan of every object; may be nil.
	Plans Plans
	// World is what a controller has of the world besides the manager. The zero value is that of this process.
	World World
}

// World is what a controller has of the world besides the API: what is played where controllers run on a copy of it. Nil
// fields are those of this process.
type World struct {
	// Now is the clock.
	Now func() time.Time
	// Intn returns a random number from 0 up to, not including, n.
	Intn func(n int) int
	// Queue returns the queue of a controller.
	Queue func(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Clock returns the clock.
func (s Setup) Clock() func() time.Time {
	if s.World.Now != nil {
		return s.World.Now
	}
	return time.Now
}

// Random returns the source of random numbers.
func (s Setup) Random() func(n int) int {
	if s.World.Intn != nil {
		return s.World.Intn
	}
	return rand.IntN
}

// PlannedBy tells apart what controllers made of objects.
type PlannedBy struct {
	Controller string
	Kind       schema.GroupKind
	Key        client.ObjectKey
}

// Plans keeps the last plan that each controller made of every object that exists.
type Plans interface {
	// Keep replaces a controller's plan of an object; failed is why it could not be made, or not be followed.
	Keep(by PlannedBy, p Plan, failed error)
	// Drop forgets an object that does not exist any more.
	Drop(kind schema.GroupKind, key client.ObjectKey)
}

// Work is notified of what is being reconciled, so that after a crash it is known what the process was doing.
type Work interface {
	// Begin is called before an object is reconciled, done in the end. An object that is set aside is not reconciled
	// before that much time has passed; done is nil then.
	Begin(kind schema.GroupVersionKind, o client.Object) (done func(), aside time.Duration)
}

// Options returns the options of the controller.
func (s Setup) Options() controller.Options {
	options := Options(s.Concurrency)
	options.NewQueue = s.World.Queue
	return options
}

// Builder starts the wiring of a controller for the kind of o.
func (s Setup) Builder(name string, o client.Object) *builder.Builder {
	return ctrl.NewControllerManagedBy(s.Manager).Named(name).WithOptions(s.Options()).
		For(o, builder.WithPredicates(s.Filter()))
}

// Filter is the predicate of the watch filter. It only saves reconciliations: each checks the scope at its beginning.
func (s Setup) Filter() predicate.Predicate {
	scope := membership.Scope{WatchFilter: s.WatchFilter}
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return scope.HasLabel(o) })
}

// Scope is the set of objects that the manager reconciles.
func (s Setup) Scope() membership.Scope {
	return membership.Scope{WatchFilter: s.WatchFilter, Cached: s.Manager.GetClient(), Live: s.Manager.GetAPIReader()}
}

// IndexByCluster makes the index of a controller by which [membership.InCluster] selects.
func (s Setup) IndexByCluster(controller string, kinds ...client.Object) error {
	return membership.IndexByCluster(s.Manager.GetFieldIndexer(), controller, kinds...)
}

// References returns the reader of the provider objects that a controller's kind refers to; see [membership.Referrers].
func (s Setup) References(name string, c controller.Controller, r membership.Referrers) (*kube.References, error) {
	return r.References(s.Manager, s.WatchFilter, name, c)
}

// NewReconciler returns the driver of c with the manager's client, writer and events.
func NewReconciler[O Object, S any](s Setup, c Controller[O, S]) *Reconciler[O, S] {
	kind, _ := apiutil.GVKForObject(c.New(), s.Manager.GetScheme()) // of a kind that is not in the scheme nothing can be read
	r := &Reconciler[O, S]{
		Controller: c, Client: s.Manager.GetClient(), Writer: s.Writer(c.Name), Live: s.Manager.GetAPIReader(), Scope: s.Scope(),
		Limits: s.Limits, Now: s.World.Now,
		work: s.Work, plans: s.Plans, kind: kind,
		Events: s.Manager.GetEventRecorder(kube.Prefix + c.Name),
		starts: pacing.Debouncer[client.ObjectKey]{Interval: s.ReconcileInterval},
		writes: pacing.Writes[client.ObjectKey, Event]{Interval: s.StatusInterval},
		normal: s.NormalEvents, metrics: s.Metrics, tracer: s.Tracer,
	}
	if s.Process != nil {
		w := kube.NewWriter(s.Process.GetClient(), c.Name)
		w.Among(s.Written)
		r.ReportBy(w, s.Process.GetEventRecorder(kube.Prefix+c.Name))
	}
	return r
}

// Writer returns the writer of the controller with this name, whose applies are counted.
func (s Setup) Writer(controller string) *kube.Writer {
	w := kube.NewWriter(s.Manager.GetClient(), controller)
	w.Among(s.Written)
	if s.Metrics != nil {
		w.OnApply(func(kind string, sent bool) { s.Metrics.applied(controller, kind, sent) })
	}
	return w
}
