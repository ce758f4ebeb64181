package loop

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kube/statuslimits"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/pacing"
)

const (
	// maxRounds bounds how often Decide may ask before it has to decide.
	maxRounds = 50
	// conflictDelay is how long the watch gets to deliver the other write of a conflict.
	conflictDelay = 50 * time.Millisecond
	// unreachableDelay is after which time what is unreachable is called again; a watch enqueues the object sooner.
	unreachableDelay = 15 * time.Second
	// invalidDelay is after which time invalid input is read again: only input that is not watched needs it.
	invalidDelay = 2 * time.Minute

	firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second
)

// Object is a kind with conditions in status.conditions.
type Object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// Controller is all the driver needs to know of one kind. O is its Go type, S its snapshot.
type Controller[O Object, S any] struct {
	// Name of the controller; the field manager is "slipway-<name>".
	Name string
	// Finalizer that the objects have while they exist; empty: none, and a deleting object is not reconciled.
	Finalizer string
	// AwaitFinalizer: another controller adds the finalizer, at the same event; until it has, nothing is done here. Both at once would be
	// a conflict each time.
	AwaitFinalizer bool
	// Gone is called when an object does not exist any more, after a deletion or without one: a move takes finalizers away. Nil:
	// nothing is left of it.
	Gone func(ctx context.Context, key client.ObjectKey) error
	// New returns an empty object.
	New func() O
	// Adopt returns what else to write together with the finalizer, such as a label and an owner; nil: it is not known
	// yet. Nil where there is nothing else.
	Adopt func(ctx context.Context, o O) (func(client.Object), error)
	// DeferFinalizer reports that there is nothing yet for the finalizer to protect: the action that creates the first of
	// it adds the finalizer too, in the same write. Nil: the finalizer comes first.
	DeferFinalizer func(o O) bool
	// Observe reads everything that Decide needs. It must not change o.
	Observe func(ctx context.Context, o O) (S, error)
	// Decide is pure and total. For a deleting object an idle plan means that its finalizer is removed.
	Decide func(S) Plan
	// Answer returns the snapshot with the question answered. Nil where Decide never asks.
	Answer func(ctx context.Context, s S, q Question) (S, error)
	// Act carries out one action.
	Act func(ctx context.Context, s S, a Action) error
	// Find carries out one action that finds something out, and returns it. Nil where there are no such actions.
	Find func(ctx context.Context, s S, a Finding) (any, error)
	// Report is pure: the status and the events that follow from the snapshot, the plan and its outcome.
	Report func(s S, p Plan, out Outcome) Report
	// Unread is pure: the status of an object of which something could not be read, or on whose reconciliation the controller
	// panicked, so that there is no plan to report. Nil: only the condition Reconciled shows that, and all others stay as they are,
	// which is right for conditions that describe an object, and wrong for one that claims that the object is reconciled.
	Unread func(o O, now time.Time, err error) Report
	// DespitePause reports that an object is reconciled although it is paused: it is to do nothing but what an administrator of the
	// pause asks for. Nil: none is.
	DespitePause func(o O) bool
	// FalseWhilePaused are the types of own conditions, positive ones, that are False with the reason Paused while the object is
	// paused. Nil: only the condition Paused says so.
	FalseWhilePaused func(o O) []string
	// Urgent declares which changes of the status something waits for. All others are written up to
	// [Setup].StatusInterval later, together.
	Urgent Urgent
}

// Reconciler drives a Controller.
type Reconciler[O Object, S any] struct {
	Controller[O, S]
	Client client.Client
	Writer *kube.Writer
	// Live reads past the cache; nil: as Client does.
	Live   client.Reader
	Events events.EventRecorder
	// Scope is the set of objects that the manager reconciles.
	Scope membership.Scope
	// Limits are what the API accepts as the status of each kind.
	Limits statuslimits.Limits
	// Now is the clock; nil: the system's.
	Now func() time.Time

	// starts debounces reconciliations, writes those of the status.
	starts   pacing.Debouncer[client.ObjectKey]
	writes   pacing.Writes[client.ObjectKey, Event]
	failures failures
	normal   *rate.Limiter
	metrics  *Metrics
	tracer   trace.Tracer
	work     Work
	plans    Plans
	// process reports with the identity of the process what the controller's own may not; nil: it has no other.
	process *reporter
	notes   notes
	kind    schema.GroupVersionKind
}

// Options returns the options every controller runs with.
func Options(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile reconciles the object once.
func (r *Reconciler[O, S]) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	began := time.Now()
	now := r.now()
	if left := r.starts.Delay(req.NamespacedName, now, r.writes.Latency(now)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			result, err = ctrl.Result{}, r.panicked(ctx, p)
		}
		if err != nil {
			r.starts.Reset(req.NamespacedName)
		}
		r.metrics.reconciled(r.Name, time.Since(began), result, err)
	}()
	o := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil {
		r.forget(req.NamespacedName, err)
		if apierrors.IsNotFound(err) && r.Gone != nil {
			return ctrl.Result{}, r.Gone(ctx, req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if included, err := r.Scope.Includes(ctx, o); err != nil || !included {
		return ctrl.Result{}, err
	}
	ctx = named(ctx, o, r.kind.Kind)
	log := ctrl.LoggerFrom(ctx)
	if r.Writer.Writes().Stale(o) {
		r.metrics.skipped(r.Name, r.Writer.KindOf(o))
		return ctrl.Result{}, nil // the event that makes the cache fresh enqueues the object again
	}
	done, aside := r.begin(o)
	if aside > 0 {
		log.V(2).Info("set aside after crashes of the manager", "for", aside)
		if err := r.tellAside(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: aside}, nil
	}
	defer done()
	ctx, span := r.span(ctx, o)
	plan, err := r.reconcile(ctx, o)
	err = r.reportTrouble(ctx, o, &plan, err)
	finish(span, plan, err)
	if r.plans != nil {
		r.plans.Keep(PlannedBy{r.Name, r.kind.GroupKind(), req.NamespacedName}, plan, err)
	}
	return r.result(log, plan, err)
}

// forget drops what is kept of an object that could not be read, where that is because it does not exist any more.
func (r *Reconciler[O, S]) forget(key client.ObjectKey, err error) {
	r.failures.forget(key)
	if r.plans != nil && apierrors.IsNotFound(err) {
		r.plans.Drop(r.kind.GroupKind(), key)
	}
}

// begin notifies Work of what is being reconciled.
func (r *Reconciler[O, S]) begin(o O) (done func(), aside time.Duration) {
	if r.work == nil {
		return func() {}, 0
	}
	return r.work.Begin(r.kind, o)
}

// panicked returns the error for a panic with a value. It is called while the panic's stack is still there.
func (r *Reconciler[O, S]) panicked(ctx context.Context, value any) error {
	ctrl.LoggerFrom(ctx).Error(nil, "panic", "value", fmt.Sprint(value), "stack", string(debug.Stack()))
	return fault.New(fault.Bug, "Panic", "the %s controller panicked: %v", r.Name, value)
}

func (r *Reconciler[O, S]) reconcile(ctx context.Context, o O) (plan Plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.unread(ctx, o, r.panicked(ctx, p))
		}
	}()
	if r.DespitePause == nil || !r.DespitePause(o) {
		if p, err := r.isPaused(ctx, o); err != nil || p != (pause{}) {
			return p.plan(r.kind.Kind, o), err
		}
	}
	if proceed, err := r.addFinalizer(ctx, o); err != nil || !proceed {
		return Plan{}, err
	}
	return r.run(ctx, o)
}

// run observes, decides, acts and reports.
func (r *Reconciler[O, S]) run(ctx context.Context, o O) (Plan, error) {
	s, err := r.Observe(ctx, o)
	if err != nil {
		return Plan{}, r.unread(ctx, o, fmt.Errorf("observing: %w", err))
	}
	s, plan, err := r.decide(ctx, s)
	if err != nil {
		return plan, r.unread(ctx, o, err)
	}
	out := r.carryOut(ctx, s, plan)
	report := r.Report(s, plan, out)
	left, refused, err := r.report(ctx, o, plan, report, out)
	deleted := out.Err == nil && plan.Idle() && !o.GetDeletionTimestamp().IsZero()
	if err != nil && !deleted { // the status of an object that ceases to exist does not matter
		return plan, first(out.Err, err)
	}
	plan.RecheckIn(left)
	r.log(ctx, plan, out)
	if deleted {
		return plan, r.removeFinalizer(ctx, o)
	}
	return plan, first(out.Err, refused)
}

// removeFinalizer removes the finalizer of an object that has nothing left to do. If its status was just written, the event
// of that write leads to the next reconciliation, which has nothing to write and comes here again. A status that is deferred
// is not written any more; the events that wait for it are recorded, since they tell of what was done.
func (r *Reconciler[O, S]) removeFinalizer(ctx context.Context, o O) error {
	if r.Writer.Writes().Stale(o) {
		return nil
	}
	err := client.IgnoreNotFound(r.Writer.Patch(ctx, o, func(o client.Object) { controllerutil.RemoveFinalizer(o, r.Finalizer) }))
	if err != nil {
		return err
	}
	r.flushEvents(o, nil)
	return nil
}

// decide runs Decide until it asks nothing more.
func (r *Reconciler[O, S]) decide(ctx context.Context, s S) (S, Plan, error) {
	for range maxRounds {
		plan := r.Decide(s)
		if len(plan.Ask) == 0 {
			return s, plan, nil
		}
		for _, q := range plan.Ask {
			var err error
			if s, err = r.Answer(ctx, s, q); err != nil {
				return s, plan, fmt.Errorf("finding out %s: %w", q, err)
			}
		}
	}
	return s, Plan{}, fault.New(fault.Bug, "Undecided", "the %s controller keeps asking and never decides", r.Name)
}

// addFinalizer makes sure that the finalizer is there, in a reconciliation of its own, and reports whether to proceed.
func (r *Reconciler[O, S]) addFinalizer(ctx context.Context, o O) (proceed bool, err error) {
	has := r.Finalizer == "" || controllerutil.ContainsFinalizer(o, r.Finalizer)
	if !o.GetDeletionTimestamp().IsZero() {
		return has && r.Finalizer != "", nil
	}
	if has || r.DeferFinalizer != nil && r.DeferFinalizer(o) {
		return true, nil
	}
	if r.AwaitFinalizer {
		return false, nil // the write that adds it leads here again
	}
	var adopt func(client.Object)
	if r.Adopt != nil {
		if adopt, err = r.Adopt(ctx, o); err != nil {
			return false, fmt.Errorf("observing: %w", err)
		}
	}
	return false, r.Writer.Patch(ctx, o, func(o client.Object) {
		controllerutil.AddFinalizer(o, r.Finalizer)
		if adopt != nil {
			adopt(o)
		}
	})
}
