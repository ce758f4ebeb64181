package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
)

// report writes the status and records the events after each reconciliation, or defers both and returns the delay.
// Package pacing decides which changes are deferred. Values that the API would reject are omitted from the status and
// listed in refused.
func (r *Reconciler[O, S]) report(ctx context.Context, o O, report Report, out Outcome) (left time.Duration, refused, err error) {
	key, failed := client.ObjectKeyFromObject(o), out.Err != nil && fault.KindOf(out.Err) != fault.Conflict
	if r.writes.Interval > 0 && !failed && r.Writer.Writes().Stale(o) {
		// The actions changed the object itself. The event of that write triggers another reconciliation, whose
		// status is for the new generation.
		r.writes.Hold(key, report.Events)
		return 0, nil, nil
	}
	if report.Status != nil {
		w := r.statusWriter()
		change, rejected, err := w.Change(o, report.Status, reporting.Pause{}.Conditions(o, r.now()))
		if err != nil {
			return 0, nil, err
		}
		refused = rejected
		if change != nil {
			// After a failure, the next reconciliation may be a long time away. Nothing waits for the status of an object
			// that is being deleted.
			urgent := failed || o.GetDeletionTimestamp().IsZero() && r.urgent.Includes(change.Have, change.Want)
			if left := r.writes.Delay(key, r.now(), urgent); left > 0 {
				r.writes.Hold(key, report.Events)
				r.metrics.HeldBack(r.Name)
				return left, refused, nil
			}
			if err := w.Write(ctx, o, change); err != nil {
				return 0, refused, err
			}
		}
	}
	r.flushEvents(o, report.Events)
	return 0, refused, nil
}

// flushEvents ends the deferral of the status, and records the held events and the events in more.
func (r *Reconciler[O, S]) flushEvents(o O, more []Event) {
	for _, e := range reporting.MergeEvents(r.writes.Release(client.ObjectKeyFromObject(o), more)) {
		r.log.Record(r.Events, o, e, r.now())
	}
}

func (r *Reconciler[O, S]) statusWriter() reporting.StatusWriter {
	live := cmp.Or[client.Reader](r.Live, r.Client)
	return reporting.StatusWriter{Writer: r.Writer, Live: live, Limits: r.Limits, Scheme: r.Client.Scheme()}
}

// unread writes the status of an object that could not be read or for which no plan could be computed, once the
// failure persists. It returns the error. The driver (reconciler.go) calls it when Observe, a read or Decide fails.
func (r *Reconciler[O, S]) unread(ctx context.Context, o O, failed error) error {
	if r.ReportFailure == nil || ctx.Err() != nil || fault.KindOf(failed) == fault.Conflict ||
		!r.failures.Persist(client.ObjectKeyFromObject(o), r.now(), failed) {
		return failed
	}
	if _, _, err := r.report(ctx, o, r.ReportFailure(o, r.now(), failed), Outcome{Err: failed}); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("writing the status after a failed read failed", "error", err.Error())
	}
	return failed
}

// reportReconciled sets the Reconciled condition if the reconciliation failed, and removes it otherwise. It returns the
// error of the reconciliation. [Reconciler.Reconcile] calls it at the end.
func (r *Reconciler[O, S]) reportReconciled(ctx context.Context, o O, plan *Plan, failed error) error {
	by := []reporting.Identity{r.identity(r.Writer, r.Events)}
	if failed == nil {
		return r.failures.Succeeded(ctx, by[0], o)
	}
	if r.process != nil {
		by = append(by, *r.process)
	}
	plan.RecheckIn(r.failures.Failed(ctx, by, o, r.now(), failed))
	return failed
}

// identity returns the identity that reports with a writer and a recorder.
func (r *Reconciler[O, S]) identity(w *kube.Writer, recorder events.EventRecorder) reporting.Identity {
	return reporting.Identity{Writer: w.WithController(r.Name + "-reconcile"), Record: func(o client.Object, e Event) {
		r.log.Record(recorder, o, e, r.now())
	}}
}

// ReportBy sets the writer and recorder for reports that the controller's own identity may not write. [NewReconciler]
// calls it if Setup.Process is set.
func (r *Reconciler[O, S]) ReportBy(w *kube.Writer, recorder events.EventRecorder) {
	process := r.identity(w, recorder)
	r.process = &process
}

// result maps the error to the time of the next reconciliation. It logs errors that users should read; errors that
// a retry resolves are not logged as errors. [Reconciler.Reconcile] returns the result to controller-runtime.
func (r *Reconciler[O, S]) result(log logr.Logger, plan Plan, err error) (ctrl.Result, error) {
	if err == nil {
		return ctrl.Result{RequeueAfter: plan.Recheck}, nil
	}
	var details []any
	if f := fault.As(err); f != nil {
		details = f.Details
	}
	switch fault.KindOf(err) {
	case fault.Conflict:
		log.V(4).Info("write conflict, retrying", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case fault.Unreachable:
		log.Info("unreachable, retrying", append(details, "error", err.Error())...)
		return ctrl.Result{RequeueAfter: cmp.Or(fault.RetryAfter(err), unreachableDelay)}, nil
	case fault.Invalid:
		log.Info("invalid input, waiting for it to change", append(details, "error", err.Error())...)
		plan.RecheckIn(invalidDelay)
		return ctrl.Result{RequeueAfter: plan.Recheck}, nil
	}
	return ctrl.Result{}, err // controller-runtime logs the error and retries with backoff
}

// logResult logs the actions and the waits of a reconciliation. The driver calls it after the actions.
func (r *Reconciler[O, S]) logResult(ctx context.Context, plan Plan, out Outcome) {
	log := ctrl.LoggerFrom(ctx)
	if len(out.Done) == 0 {
		log = log.V(4)
	}
	log.Info("reconciled", "done", texts(out.Done), "waiting", texts(plan.Waits))
}

func texts[T fmt.Stringer](items []T) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.String())
	}
	return out
}
