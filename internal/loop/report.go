package loop

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/pacing"
)

// report writes the status and records the events, or defers both and returns for how long. What the API would refuse of the
// status is left out, and refused says so.
func (r *Reconciler[O, S]) report(ctx context.Context, o O, plan Plan, report Report, out Outcome) (left time.Duration, refused, err error) {
	key, failed := client.ObjectKeyFromObject(o), out.Err != nil && fault.KindOf(out.Err) != fault.Conflict
	if r.writes.Interval > 0 && !failed && r.Writer.Writes().Stale(o) {
		// The actions wrote the object itself: the event of that leads to another reconciliation, whose status is of the new
		// generation.
		r.writes.Keep(key, report.Events, r.now())
		return 0, nil, nil
	}
	if report.Status != nil {
		var change *kube.StatusChange
		if change, refused, err = r.statusChange(o, report.Status); err != nil {
			return 0, nil, err
		}
		if change != nil {
			urgency := r.Urgent.urgencyOf(change, course{
				deleting: !o.GetDeletionTimestamp().IsZero(), acted: len(out.Done) > 0, person: plan.awaitsPerson(),
			})
			if failed { // the next attempt may be far away
				urgency = pacing.Urgent
			}
			if left := r.writes.Delay(key, r.now(), urgency); left > 0 {
				r.writes.Keep(key, report.Events, r.now())
				r.metrics.heldBack(r.Name)
				return left, refused, nil
			}
			if err := r.write(ctx, o, change); err != nil {
				return 0, refused, err
			}
		}
	}
	r.flushEvents(o, report.Events)
	return 0, refused, nil
}

// write writes a change of the status and measures how long that takes.
func (r *Reconciler[O, S]) write(ctx context.Context, o O, change *kube.StatusChange) error {
	began := r.now()
	if err := r.takeOver(ctx, o, change.Want); err != nil {
		return err
	}
	if err := change.Write(ctx); err != nil {
		return err
	}
	ended := r.now()
	r.writes.Wrote(ended.Sub(began), ended)
	return nil
}

// flushEvents records the events that were kept until now, and more.
func (r *Reconciler[O, S]) flushEvents(o O, more []Event) {
	for _, e := range combined(r.writes.Release(client.ObjectKeyFromObject(o), more)) {
		r.record(o, e)
	}
}

// statusChange is what to write of the status, with the condition that the object is not paused; nil: nothing. What the API
// would refuse is left out, and refused says what that is.
func (r *Reconciler[O, S]) statusChange(o O, status any) (change *kube.StatusChange, refused, err error) {
	change, err = r.Writer.StatusChange(o, status, pauseTable.Evaluate(pause{}, r.moment(o))...)
	if err != nil || change == nil || r.Limits == nil {
		return change, nil, err
	}
	kept, refused := r.accepted(o, change.Want)
	if refused == nil {
		return change, nil, nil
	}
	change, err = r.Writer.StatusChange(o, kept)
	return change, refused, err
}

// takeOver makes the controller own what the reference implementation has written of the status, before it writes its own:
// all fields, and those conditions that it writes itself. Others may be of programs that have nothing to do with it.
func (r *Reconciler[O, S]) takeOver(ctx context.Context, o O, want map[string]any) error {
	var types []string
	list, _ := want["conditions"].([]any)
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			t, _ := c["type"].(string)
			types = append(types, t)
		}
	}
	live := r.Live
	if live == nil {
		live = r.Client
	}
	return client.IgnoreNotFound(r.Writer.TakeOverStatus(ctx, live, o, kube.AllButConditions(types...)))
}

// unread writes the status of an object that could not be read or decided about, once that lasts, and returns the error.
func (r *Reconciler[O, S]) unread(ctx context.Context, o O, failed error) error {
	if r.Unread == nil || ctx.Err() != nil || fault.KindOf(failed) == fault.Conflict || !r.failures.lasts(client.ObjectKeyFromObject(o), r.now(), failed) {
		return failed
	}
	if _, _, err := r.report(ctx, o, Plan{}, r.Unread(o, r.now(), failed), Outcome{Err: failed}); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("writing the status of what could not be read failed", "error", err.Error())
	}
	return failed
}
