package reconciler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/slipwayhq/slipway/internal/fault"
)

// record records an event. Normal events are dropped when the rate limit is exceeded, because an event is a write
// and the status contains the same information.
func (r *Reconciler[O, S]) record(o O, e Event) { r.recordBy(r.Events, o, e) }

func (r *Reconciler[O, S]) recordBy(recorder events.EventRecorder, o O, e Event) {
	if recorder == nil {
		return
	}
	kind := e.Type
	if kind == "" {
		kind = "Normal"
	}
	if kind == "Normal" && r.normal != nil && !r.normal.Allow() {
		r.metrics.droppedEvent(r.Name)
		return
	}
	note := noteOf(e.Message)
	recorder.Eventf(r.notes.regarding(o, e.Reason+"/"+note, r.now()), nil, kind, e.Reason, "Reconcile", "%s", note)
}

// maxNote is the maximum length of an event's note in bytes, as limited by the API.
const maxNote = 1024

// noteOf truncates a message to the length that the API accepts.
func noteOf(message string) string {
	const more = "…"
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(more)], "") + more
}

// combined merges events of the same type and reason into one. The recorder treats such events as repetitions of
// the first and retains only its text.
func combined(events []Event) []Event {
	var out []Event
	for _, e := range events {
		same := func(o Event) bool { return o.Type == e.Type && o.Reason == e.Reason }
		if i := slices.IndexFunc(out, same); i >= 0 {
			out[i].Message += "; " + e.Message
		} else {
			out = append(out, e)
		}
	}
	return out
}

func (r *Reconciler[O, S]) log(ctx context.Context, plan Plan, out Outcome) {
	log := ctrl.LoggerFrom(ctx)
	if len(out.Done) == 0 {
		log = log.V(4)
	}
	log.Info("reconciled", "done", texts(out.Done), "waiting", texts(plan.Waits))
}

// result maps the error to the time of the next reconciliation. It logs errors that users should read; errors that
// a retry resolves are not logged as errors.
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

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func texts[T fmt.Stringer](items []T) []string {
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.String())
	}
	return out
}
