package reconciler

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
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reconciler/pacing"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// Setup contains the dependencies and settings of a controller. The manager passes one to the Add function of each
// controller, and `slipway plan` passes one with a manager in memory.
type Setup struct {
	Manager ctrl.Manager
	// Process is the manager with the identity of the process, if Manager has the identity of a provider. It
	// reports on objects that the provider's identity may not write. If it is nil, both identities are the same.
	Process ctrl.Manager
	// WatchFilter limits the controllers to objects with this value of the label cluster.x-k8s.io/watch-filter, in
	// Clusters with the same label value. If it is empty, there is no limit. See [watches.Scope].
	WatchFilter string
	// Concurrency is how many objects of the kind are reconciled in parallel.
	Concurrency int
	// StatusInterval is the delay of status writes that are not urgent. Zero writes every change at once.
	StatusInterval time.Duration
	// ReconcileInterval is the minimum time between the starts of two reconciliations of an object. Zero reconciles
	// on every event at once.
	ReconcileInterval time.Duration
	// NormalEvents is a rate limiter for events of type Normal that several controllers can share. If it is nil,
	// there is no limit.
	NormalEvents *rate.Limiter
	// Writes records the writes of all controllers that share it. If it is nil, each controller records only its
	// own writes.
	Writes *kube.Writes
	// CreatedOwners records the owners created by all controllers that share it. If it is nil, no owners are recorded.
	CreatedOwners *ownership.CreatedOwners
	// Limits are the limits that the API sets for the status of each kind. If it is nil, they are unknown.
	Limits kube.StatusLimits
	// Metrics are the metrics of all controllers, or nil.
	Metrics *reporting.Metrics
	// Tracer records a span for every reconciliation. It may be nil.
	Tracer trace.Tracer
	// Work is notified of every reconciliation. It may be nil.
	Work WorkTracker
	// Plans stores the last plan of every object. It may be nil.
	Plans PlanStore
	// Environment replaces the clock, random numbers and queues. The zero value uses the ones of this process.
	Environment Environment
}

// Environment contains the inputs of a controller other than the API. Simulations that run controllers on a copy of a
// cluster replace them. Nil fields use the defaults of this process. Package plan/world sets it.
type Environment struct {
	// Now is the clock.
	Now func() time.Time
	// Intn returns a random number in [0, n).
	Intn func(n int) int
	// Queue returns the work queue of a controller.
	Queue func(controller string, limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Clock returns the clock of the environment, or time.Now. The Add functions of the controllers call it.
func (s Setup) Clock() func() time.Time {
	if s.Environment.Now != nil {
		return s.Environment.Now
	}
	return time.Now
}

// Random returns the random numbers of the environment, or of math/rand. The MachineSet and KubeadmControlPlane
// controllers generate names with it.
func (s Setup) Random() func(n int) int {
	if s.Environment.Intn != nil {
		return s.Environment.Intn
	}
	return rand.IntN
}

// PlanKey identifies a plan: several controllers can reconcile the same object. The driver and package plan/world set
// it.
type PlanKey struct {
	Controller string
	Kind       schema.GroupKind
	Key        client.ObjectKey
}

// PlanStore stores the last plan of each controller for every existing object. The manager has one for `slipway
// explain`, and `slipway plan` has its own. [Reconciler.Reconcile] stores each plan in it.
type PlanStore interface {
	// Store stores a controller's plan for an object. The error failed explains why the plan could not be computed
	// or completed.
	Store(by PlanKey, p Plan, failed error)
	// Drop removes the plans for an object that no longer exists.
	Drop(kind schema.GroupKind, key client.ObjectKey)
}

// WorkTracker is notified of every reconciliation, so that after a crash the objects in progress are known. Only the
// manager of `slipway up` has one (package managerproc).
type WorkTracker interface {
	// Begin is called before an object is reconciled, and done after the reconciliation. If aside is positive, the
	// object is quarantined: it is not reconciled before that time has passed, and done is nil.
	Begin(kind schema.GroupVersionKind, o client.Object) (done func(), aside time.Duration)
}

// firstRetry and lastRetry limit the backoff after errors that the driver does not map to a delay of its own.
const firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second

// Options returns the options of a controller of controller-runtime. [Setup.Builder] calls it, and so do the
// credentials and topology controllers, which build themselves without it.
func (s Setup) Options() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: s.Concurrency, NewQueue: s.Environment.Queue,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Builder starts the setup of a controller for the kind of o. The Add functions of the controllers call it and add
// their watches.
func (s Setup) Builder(name string, o client.Object) *builder.Builder {
	return ctrl.NewControllerManagedBy(s.Manager).Named(name).WithOptions(s.Options()).
		For(o, builder.WithPredicates(s.Filter()))
}

// Filter returns the predicate for the watch filter. It only avoids unnecessary reconciliations: every
// reconciliation checks the scope first.
func (s Setup) Filter() predicate.Predicate {
	scope := watches.Scope{WatchFilter: s.WatchFilter}
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return scope.HasLabel(o) })
}

// Scope returns the set of objects that the manager reconciles.
func (s Setup) Scope() watches.Scope {
	return watches.Scope{WatchFilter: s.WatchFilter, Cached: s.Manager.GetClient(), Live: s.Manager.GetAPIReader()}
}

// References returns the reader for provider objects that the controller's kind references.
func (s Setup) References(name string, c controller.Controller, r watches.Referrers) (*kube.References, error) {
	return r.References(s.Manager, s.WatchFilter, name, c)
}

// NewReconciler returns the driver for c with the manager's client, writer and event recorder. The Add function of each
// controller that uses the driver calls it.
func NewReconciler[O Object, S any](s Setup, c Controller[O, S]) *Reconciler[O, S] {
	kind, _ := apiutil.GVKForObject(c.New(), s.Manager.GetScheme()) // objects of a kind that is not in the scheme cannot be read
	r := &Reconciler[O, S]{
		Controller: c, Client: s.Manager.GetClient(), Writer: s.Writer(c.Name), Live: s.Manager.GetAPIReader(), Scope: s.Scope(),
		Limits: s.Limits, Now: s.Environment.Now,
		work: s.Work, plans: s.Plans, kind: kind, urgent: pacing.UrgentOf(c.New()),
		Events: s.Manager.GetEventRecorder(kube.ManagerPrefix + c.Name),
		starts: pacing.Debouncer[client.ObjectKey]{Interval: s.ReconcileInterval},
		writes: pacing.WriteDebouncer[client.ObjectKey, Event]{Interval: s.StatusInterval},
		log:    reporting.EventLog{Controller: c.Name, NormalRate: s.NormalEvents, Metrics: s.Metrics}, metrics: s.Metrics, tracer: s.Tracer,
	}
	if s.Process != nil {
		w := kube.NewWriter(s.Process.GetClient(), c.Name)
		w.ShareWritesWith(s.Writes)
		r.ReportBy(w, s.Process.GetEventRecorder(kube.ManagerPrefix+c.Name))
	}
	return r
}

// Writer returns the writer of the named controller. Its applies are counted in the metrics.
func (s Setup) Writer(controller string) *kube.Writer {
	w := kube.NewWriter(s.Manager.GetClient(), controller)
	w.ShareWritesWith(s.Writes)
	if s.Metrics != nil {
		w.OnApply(func(kind string, sent bool) { s.Metrics.Applied(controller, kind, sent) })
	}
	return w
}
