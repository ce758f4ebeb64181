package reconciler

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	"github.com/slipwayhq/slipway/internal/reconciler/pacing"
)

const (
	// maxRounds limits how often Decide may request additional reads for one plan.
	maxRounds = 50
	// conflictDelay is the retry delay after a conflict. It leaves time for the watch to deliver the conflicting
	// write.
	conflictDelay = 50 * time.Millisecond
	// unreachableDelay is the retry delay for an unreachable server. A watch may enqueue the object earlier.
	unreachableDelay = 15 * time.Second
	// invalidDelay is the interval for reading invalid input again. It matters only for input that is not watched.
	invalidDelay = 2 * time.Minute

	firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second
)

// Reconciler runs a [Controller].
type Reconciler[O Object, S any] struct {
	Controller[O, S]
	Client client.Client
	Writer *kube.Writer
	// Live reads from the API server instead of the cache. If it is nil, Client is used.
	Live   client.Reader
	Events events.EventRecorder
	// Scope is the set of objects that the manager reconciles.
	Scope Scope
	// Limits are the limits that the API sets for the status of each kind.
	Limits kube.StatusLimits
	// Now is the clock. If it is nil, time.Now is used.
	Now func() time.Time

	// starts debounces reconciliations; writes debounces status writes.
	starts   pacing.Debouncer[client.ObjectKey]
	writes   pacing.WriteDebouncer[client.ObjectKey, Event]
	failures failures
	normal   *rate.Limiter
	metrics  *Metrics
	tracer   trace.Tracer
	work     WorkTracker
	plans    PlanStore
	// process reports with the identity of the manager process if the controller's own identity may not write. It
	// is nil if there is only one identity.
	process *reporter
	notes   eventVersions
	kind    schema.GroupVersionKind
}

// options returns the options for every controller.
func options(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile performs one reconciliation of the object.
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
		if apierrors.IsNotFound(err) && r.OnDeleted != nil {
			return ctrl.Result{}, r.OnDeleted(ctx, req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if included, err := r.Scope.Includes(ctx, o); err != nil || !included {
		return ctrl.Result{}, err
	}
	ctx = withObjectNames(ctx, o, r.kind.Kind)
	log := ctrl.LoggerFrom(ctx)
	if r.Writer.Writes().Stale(o) {
		r.metrics.skipped(r.Name, r.Writer.KindOf(o))
		return ctrl.Result{}, nil // the event that makes the cache fresh enqueues the object again
	}
	done, aside := r.begin(o)
	if aside > 0 {
		log.V(2).Info("set aside after crashes of the manager", "for", aside)
		if err := r.reportQuarantine(ctx, o); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: aside}, nil
	}
	defer done()
	ctx, span := r.span(ctx, o)
	plan, err := r.reconcile(ctx, o)
	err = r.reportReconciled(ctx, o, &plan, err)
	finish(span, plan, err)
	if r.plans != nil {
		r.plans.Store(PlanKey{r.Name, r.kind.GroupKind(), req.NamespacedName}, plan, err)
	}
	return r.result(log, plan, err)
}

// forget drops the failure record of an object that could not be read, and its last plan if the object no longer
// exists.
func (r *Reconciler[O, S]) forget(key client.ObjectKey, err error) {
	r.failures.forget(key)
	if r.plans != nil && apierrors.IsNotFound(err) {
		r.plans.Drop(r.kind.GroupKind(), key)
	}
}

// begin notifies the [WorkTracker] that the reconciliation of an object starts.
func (r *Reconciler[O, S]) begin(o O) (done func(), aside time.Duration) {
	if r.work == nil {
		return func() {}, 0
	}
	return r.work.Begin(r.kind, o)
}

// panicked returns the error for a recovered panic value. It must be called before the panicking stack is unwound,
// because it logs the stack.
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
	if r.ReconcilesPaused == nil || !r.ReconcilesPaused(o) {
		if p, err := r.isPaused(ctx, o); err != nil || p != (pause{}) {
			return p.plan(r.kind.Kind, o), err
		}
	}
	if proceed, err := r.addFinalizer(ctx, o); err != nil || !proceed {
		return Plan{}, err
	}
	return r.run(ctx, o)
}

func (r *Reconciler[O, S]) run(ctx context.Context, o O) (Plan, error) {
	s, err := r.Observe(ctx, o)
	if err != nil {
		return Plan{}, r.unread(ctx, o, fmt.Errorf("observing: %w", err))
	}
	s, plan, err := r.decide(ctx, s)
	if err != nil {
		return plan, r.unread(ctx, o, err)
	}
	out := r.runActions(ctx, s, plan)
	report := r.Report(s, plan, out)
	left, refused, err := r.report(ctx, o, plan, report, out)
	deleted := out.Err == nil && plan.Idle() && !o.GetDeletionTimestamp().IsZero()
	if err != nil && !deleted { // the status of an object that is about to disappear does not matter
		return plan, first(out.Err, err)
	}
	plan.RecheckIn(left)
	r.log(ctx, plan, out)
	if deleted {
		return plan, r.removeFinalizer(ctx, o)
	}
	return plan, first(out.Err, refused)
}

// removeFinalizer removes the finalizer of an object that needs no further actions. If the status was just written,
// the event of that write triggers the next reconciliation, which has nothing to write and removes the finalizer. A
// deferred status write is dropped, but its events are recorded because they report completed actions.
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

// decide runs Decide until the plan requests no more reads.
func (r *Reconciler[O, S]) decide(ctx context.Context, s S) (S, Plan, error) {
	for range maxRounds {
		plan := r.Decide(s)
		if len(plan.Reads) == 0 {
			return s, plan, nil
		}
		for _, q := range plan.Reads {
			var err error
			if s, err = r.Read(ctx, s, q); err != nil {
				return s, plan, fmt.Errorf("finding out %s: %w", q, err)
			}
		}
	}
	return s, Plan{}, fault.New(fault.Bug, "Undecided", "the %s controller keeps asking and never decides", r.Name)
}

// addFinalizer adds the finalizer if it is missing and reports whether to proceed. Adding the finalizer ends the
// reconciliation.
func (r *Reconciler[O, S]) addFinalizer(ctx context.Context, o O) (proceed bool, err error) {
	has := r.Finalizer == "" || controllerutil.ContainsFinalizer(o, r.Finalizer)
	if !o.GetDeletionTimestamp().IsZero() {
		return has && r.Finalizer != "", nil
	}
	if has || r.DeferFinalizer != nil && r.DeferFinalizer(o) {
		return true, nil
	}
	if r.AwaitFinalizer {
		return false, nil // adding the finalizer enqueues the object again
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
