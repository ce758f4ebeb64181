package reconciler

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/pacing"
)

// report writes the status and records the events, or defers both and returns the delay. Values that the API would
// reject are omitted from the status and listed in refused.
func (r *Reconciler[O, S]) report(ctx context.Context, o O, plan Plan, report Report, out Outcome) (left time.Duration, refused, err error) {
	key, failed := client.ObjectKeyFromObject(o), out.Err != nil && fault.KindOf(out.Err) != fault.Conflict
	if r.writes.Interval > 0 && !failed && r.Writer.Writes().Stale(o) {
		// The actions changed the object itself. The event of that write triggers another reconciliation, whose
		// status is for the new generation.
		r.writes.Hold(key, report.Events, r.now())
		return 0, nil, nil
	}
	if report.Status != nil {
		var change *kube.StatusChange
		if change, refused, err = r.statusChange(o, report.Status); err != nil {
			return 0, nil, err
		}
		if change != nil {
			urgency := r.Urgent.urgencyOf(change, reconcileSummary{
				deleting: !o.GetDeletionTimestamp().IsZero(), acted: len(out.Done) > 0, person: plan.needsUser(),
			})
			if failed { // the next attempt may be a long time away
				urgency = pacing.Urgent
			}
			if left := r.writes.Delay(key, r.now(), urgency); left > 0 {
				r.writes.Hold(key, report.Events, r.now())
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

// write writes a status change and measures its duration.
func (r *Reconciler[O, S]) write(ctx context.Context, o O, change *kube.StatusChange) error {
	began := r.now()
	if err := r.transferStatusOwnership(ctx, o, change.Want); err != nil {
		return err
	}
	if err := change.Write(ctx); err != nil {
		return err
	}
	ended := r.now()
	r.writes.Wrote(ended.Sub(began), ended)
	return nil
}

// flushEvents records the deferred events and the events in more.
func (r *Reconciler[O, S]) flushEvents(o O, more []Event) {
	for _, e := range mergeEvents(r.writes.Release(client.ObjectKeyFromObject(o), more)) {
		r.record(o, e)
	}
}

// statusChange returns the status change to write, including the Paused condition with status False, or nil if
// there is none. Values that the API would reject are omitted and listed in refused.
func (r *Reconciler[O, S]) statusChange(o O, status any) (change *kube.StatusChange, refused, err error) {
	change, err = r.Writer.StatusChange(o, status, pauseTable.Evaluate(pause{}, r.moment(o))...)
	if err != nil || change == nil || r.Limits == nil {
		return change, nil, err
	}
	kept, refused := r.pruneRejected(o, change.Want)
	if refused == nil {
		return change, nil, nil
	}
	change, err = r.Writer.StatusChange(o, kept)
	return change, refused, err
}

// transferStatusOwnership transfers the ownership of status fields from the field managers of the reference implementation before
// the controller writes its own status. It transfers all fields but only those conditions that the controller
// itself writes, because unrelated programs may own the others.
func (r *Reconciler[O, S]) transferStatusOwnership(ctx context.Context, o O, want map[string]any) error {
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
	return client.IgnoreNotFound(r.Writer.TransferStatusOwnership(ctx, live, o, kube.AllButConditions(types...)))
}

// unread writes the status of an object that could not be read or for which no plan could be computed, once the
// failure persists. It returns the error.
func (r *Reconciler[O, S]) unread(ctx context.Context, o O, failed error) error {
	if r.ReportFailure == nil || ctx.Err() != nil || fault.KindOf(failed) == fault.Conflict || !r.failures.lasts(client.ObjectKeyFromObject(o), r.now(), failed) {
		return failed
	}
	if _, _, err := r.report(ctx, o, Plan{}, r.ReportFailure(o, r.now(), failed), Outcome{Err: failed}); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("writing the status of what could not be read failed", "error", err.Error())
	}
	return failed
}
