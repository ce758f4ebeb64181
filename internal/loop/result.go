package loop

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

// record records an event. Normal ones are left out while there are too many of them: an event is a write, and the status
// says the same.
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

// maxNote is how many bytes of text the API takes in an event.
const maxNote = 1024

// noteOf is a message as the API takes it: of a longer one the beginning.
func noteOf(message string) string {
	const more = "…"
	if len(message) <= maxNote {
		return message
	}
	return strings.ToValidUTF8(message[:maxNote-len(more)], "") + more
}

// combined makes one event of those of the same type and reason. The recorder takes such events for repetitions of the first
// and keeps its text alone.
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
	log.Info("reconciled", "done", texts(out.Done), "waiting", texts(plan.Wait))
}

// result turns the kind of an error into when to reconcile next. It logs what a person should read; what a retry solves is
// not an error of the program.
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
	return ctrl.Result{}, err // logged, with backoff, by controller-runtime
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
