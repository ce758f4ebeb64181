package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/pacing"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
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
)

// Reconciler is the driver: it runs a [Controller] for one object at a time per worker. [NewReconciler] creates it, and
// controller-runtime calls Reconcile for each object in the work queue of the controller.
type Reconciler[O Object, S any] struct {
	Controller[O, S]
	Client client.Client
	Writer *kube.Writer
	// Live reads from the API server instead of the cache. If it is nil, Client is used.
	Live   client.Reader
	Events events.EventRecorder
	// Scope is the set of objects that the manager reconciles.
	Scope watches.Scope
	// Limits are the limits that the API sets for the status of each kind.
	Limits kube.StatusLimits
	// Now is the clock. If it is nil, time.Now is used.
	Now func() time.Time

	// starts debounces reconciliations; writes debounces status writes.
	starts   pacing.Debouncer[client.ObjectKey]
	writes   pacing.WriteDebouncer[client.ObjectKey, Event]
	urgent   pacing.Urgent
	failures reporting.Failures
	log      reporting.EventLog
	metrics  *reporting.Metrics
	tracer   trace.Tracer
	work     WorkTracker
	plans    PlanStore
	// process reports with the identity of the manager process if the controller's own identity may not write. It
	// is nil if there is only one identity.
	process *reporting.Identity
	kind    schema.GroupVersionKind
}

// Reconcile performs one reconciliation of the object, in the steps that the package comment lists. Objects that are
// outside the manager's scope, stale in the cache or quarantined end it before any function of the controller is
// called.
func (r *Reconciler[O, S]) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	began := time.Now()
	now := r.now()
	if left := r.starts.Delay(req.NamespacedName, now); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = r.panicked(ctx, p)
		}
		if err != nil {
			result = ctrl.Result{}
			r.starts.Reset(req.NamespacedName)
		}
		r.metrics.Reconciled(r.Name, time.Since(began), result, err)
	}()
	o := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil {
		return ctrl.Result{}, r.forget(ctx, req.NamespacedName, err)
	}
	if included, err := r.Scope.Includes(ctx, o); err != nil || !included {
		return ctrl.Result{}, err
	}
	ctx = reporting.WithObjectNames(ctx, o, r.kind.Kind)
	log := ctrl.LoggerFrom(ctx)
	if r.Writer.Writes().Stale(o) {
		r.metrics.Skipped(r.Name, r.Writer.KindOf(o))
		return ctrl.Result{}, nil // the event that makes the cache fresh enqueues the object again
	}
	if r.work != nil {
		done, aside := r.work.Begin(r.kind, o)
		if aside > 0 {
			log.V(2).Info("quarantined after crashes of the manager", "for", aside)
			return ctrl.Result{RequeueAfter: aside}, r.identity(r.Writer, r.Events).Quarantine(ctx, o, now)
		}
		defer done()
	}
	ctx, span := reporting.StartSpan(ctx, r.tracer, r.Name, o)
	plan, err := r.reconcile(ctx, o)
	err = r.reportReconciled(ctx, o, &plan, err)
	span.End(texts(plan.Actions), texts(plan.Waits), err)
	if r.plans != nil {
		r.plans.Store(PlanKey{r.Name, r.kind.GroupKind(), req.NamespacedName}, plan, err)
	}
	return r.result(log, plan, err)
}

// forget drops the records of an object that no longer exists. If the object could not be read, it returns the error.
func (r *Reconciler[O, S]) forget(ctx context.Context, key client.ObjectKey, err error) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	r.failures.Forget(key)
	r.starts.Reset(key)
	r.writes.Release(key, nil)
	if r.plans != nil {
		r.plans.Drop(r.kind.GroupKind(), key)
	}
	if r.OnDeleted == nil {
		return nil
	}
	return r.OnDeleted(ctx, key)
}

// panicked returns the error for a recovered panic value. It must be called before the panicking stack is unwound,
// because it logs the stack.
func (r *Reconciler[O, S]) panicked(ctx context.Context, value any) error {
	ctrl.LoggerFrom(ctx).Error(nil, "panic", "value", fmt.Sprint(value), "stack", string(debug.Stack()))
	return fault.New(fault.Bug, "Panic", "the %s controller panicked: %v", r.Name, value)
}

// reconcile checks for a pause first: a paused object gets no finalizer and no write except its conditions.
func (r *Reconciler[O, S]) reconcile(ctx context.Context, o O) (plan Plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.unread(ctx, o, r.panicked(ctx, p))
		}
	}()
	if p, err := r.isPaused(ctx, o); err != nil || p != (reporting.Pause{}) {
		return pausePlan(p, r.kind.Kind, o), err
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
	left, refused, err := r.report(ctx, o, report, out)
	deleted := out.Err == nil && plan.Idle() && !o.GetDeletionTimestamp().IsZero()
	if err != nil && !deleted { // the status of an object that is about to disappear does not matter
		return plan, cmp.Or(out.Err, err)
	}
	plan.RecheckIn(left)
	r.logResult(ctx, plan, out)
	if deleted {
		return plan, r.removeFinalizer(ctx, o)
	}
	return plan, cmp.Or(out.Err, refused)
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
				return s, plan, fmt.Errorf("reading %s: %w", q, err)
			}
		}
	}
	return s, Plan{}, fault.New(fault.Bug, "Undecided", "the %s controller requested reads %d times without a decision", r.Name, maxRounds)
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
