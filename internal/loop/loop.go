package loop

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
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
)

const (
	// maxRounds bounds how often Decide may ask before it has to decide.
	maxRounds = 5
	// conflictDelay is how long the watch gets to deliver what we conflicted with.
	conflictDelay = 50 * time.Millisecond
	// unreachableDelay is how long to leave something alone that does not answer; what watches it wakes the
	// controller sooner.
	unreachableDelay = 15 * time.Second
	// invalidDelay is how long to leave something alone that a person has to change: only what is not
	// watched can need it.
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
	// Finalizer that the objects carry while they exist; empty: none, and a deleting object is not looked at.
	Finalizer string
	// New returns an empty object.
	New func() O
	// Enter returns what else to write together with the finalizer, such as a label and an owner; nil: nothing
	// can be said yet. Nil where nothing ever is.
	Enter func(ctx context.Context, o O) (func(client.Object), error)
	// Late reports that there is nothing yet for the finalizer to protect: the action that makes the first of it adds
	// the finalizer too, in the same write. Nil: the finalizer comes first.
	Late func(o O) bool
	// Observe reads everything that Decide looks at. It must not change o.
	Observe func(ctx context.Context, o O) (S, error)
	// Decide is pure and total. For a deleting object an idle plan means that its finalizer may go.
	Decide func(S) Plan
	// Answer returns the snapshot with the question answered. Nil where Decide never asks.
	Answer func(ctx context.Context, s S, q Question) (S, error)
	// Act carries out one action.
	Act func(ctx context.Context, s S, a Action) error
	// Report is pure: the status and the events that follow from the pass.
	Report func(s S, p Plan, out Outcome) Report
	// Calm names further fields of the status that nobody waits for: a change of theirs may be written up to
	// [Setup].Pace later, together with others.
	Calm []string
}

// Reconciler drives a Controller.
type Reconciler[O Object, S any] struct {
	Controller[O, S]
	Client client.Client
	Writer *kube.Writer
	// Live reads past the cache; nil: as Client does.
	Live   client.Reader
	Events events.EventRecorder
	// Scope is what the manager limits itself to.
	Scope Scope
	// Limits are what the API accepts as the status of each kind.
	Limits kube.Limits
	// Now is the clock; nil: the system's.
	Now func() time.Time

	pacer    pacer
	rests    rests
	failures failures
	normal   *rate.Limiter
	metrics  *Metrics
	tracer   trace.Tracer
	work     Work
	kind     schema.GroupVersionKind
}

// Options returns the options every controller runs with.
func Options(concurrency int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: concurrency,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile makes one pass over the object.
func (r *Reconciler[O, S]) Reconcile(ctx context.Context, req ctrl.Request) (result ctrl.Result, err error) {
	log, began := ctrl.LoggerFrom(ctx), time.Now()
	now := r.now()
	if left := r.rests.left(req.NamespacedName, now, r.pacer.takes(now)); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	defer func() {
		if p := recover(); p != nil {
			result, err = ctrl.Result{}, r.panicked(ctx, p)
		}
		if err != nil {
			r.rests.failed(req.NamespacedName)
		}
		r.metrics.passed(r.Name, time.Since(began), result, err)
	}()
	o := r.New()
	if err := r.Client.Get(ctx, req.NamespacedName, o); err != nil {
		r.failures.over(req.NamespacedName) // where it is gone
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ours, err := r.Scope.Has(ctx, o); err != nil || !ours {
		return ctrl.Result{}, err
	}
	if r.Writer.Writes().Stale(o) {
		r.metrics.skipped(r.Name, r.Writer.KindOf(o))
		return ctrl.Result{}, nil // the event that makes the cache fresh comes back here
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
	err = r.tell(ctx, o, err)
	finish(span, plan, err)
	return r.result(log, plan, err)
}

// begin tells Work what is being reconciled.
func (r *Reconciler[O, S]) begin(o O) (done func(), aside time.Duration) {
	if r.work == nil {
		return func() {}, 0
	}
	return r.work.Begin(r.kind, o)
}

// panicked makes an error of what a panic was called with. It is called while the panic's stack is still there.
func (r *Reconciler[O, S]) panicked(ctx context.Context, value any) error {
	ctrl.LoggerFrom(ctx).Error(nil, "panic", "value", fmt.Sprint(value), "stack", string(debug.Stack()))
	return fault.New(fault.Bug, "Panic", "the %s controller panicked: %v", r.Name, value)
}

func (r *Reconciler[O, S]) reconcile(ctx context.Context, o O) (plan Plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = r.panicked(ctx, p)
		}
	}()
	if paused, err := r.paused(ctx, o); err != nil || paused {
		return Plan{}, err
	}
	if proceed, err := r.finalizer(ctx, o); err != nil || !proceed {
		return Plan{}, err
	}
	return r.pass(ctx, o)
}

// pass observes, decides, acts and reports.
func (r *Reconciler[O, S]) pass(ctx context.Context, o O) (Plan, error) {
	s, err := r.Observe(ctx, o)
	if err != nil {
		return Plan{}, fmt.Errorf("observing: %w", err)
	}
	s, plan, err := r.decide(ctx, s)
	if err != nil {
		return plan, err
	}
	out := r.carryOut(ctx, s, plan)
	report := r.Report(s, plan, out)
	left, refused, err := r.report(ctx, o, report, out)
	over := out.Err == nil && plan.Idle() && !o.GetDeletionTimestamp().IsZero()
	if err != nil && !over { // what becomes of the status of an object that goes does not matter
		return plan, first(out.Err, err)
	}
	plan.RecheckIn(left)
	r.log(ctx, plan, out)
	if over {
		return plan, r.release(ctx, o)
	}
	return plan, first(out.Err, refused)
}

// release removes the finalizer of an object that has nothing left to do. If this pass wrote the status, the
// event of that write makes the next pass, which has nothing to write and comes here again. A status that is held
// back is not written any more; the events that wait for it are recorded, since they tell of what was done.
func (r *Reconciler[O, S]) release(ctx context.Context, o O) error {
	if r.Writer.Writes().Stale(o) {
		return nil
	}
	err := client.IgnoreNotFound(r.Writer.Patch(ctx, o, func(o client.Object) { controllerutil.RemoveFinalizer(o, r.Finalizer) }))
	if err != nil {
		return err
	}
	for _, e := range r.pacer.release(client.ObjectKeyFromObject(o), nil) {
		r.record(o, e)
	}
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

// finalizer makes sure that the finalizer is there, in a pass of its own (CL-01, MA-01), and reports whether
// to go on.
func (r *Reconciler[O, S]) finalizer(ctx context.Context, o O) (bool, error) {
	has := r.Finalizer == "" || controllerutil.ContainsFinalizer(o, r.Finalizer)
	deleting := !o.GetDeletionTimestamp().IsZero()
	if deleting {
		return has && r.Finalizer != "", nil
	}
	if has {
		return true, nil
	}
	if r.Late != nil && r.Late(o) {
		return true, nil
	}
	var also func(client.Object)
	if r.Enter != nil {
		var err error
		if also, err = r.Enter(ctx, o); err != nil {
			return false, fmt.Errorf("observing: %w", err)
		}
	}
	return false, r.Writer.Patch(ctx, o, func(o client.Object) {
		controllerutil.AddFinalizer(o, r.Finalizer)
		if also != nil {
			also(o)
		}
	})
}
