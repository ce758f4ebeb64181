package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

// ReconciledCondition is False on an object whose reconciliation ends in an error, and says why. An object without it is
// reconciled. The driver alone writes it, under a field manager of its own, on every kind: the conditions of a controller are
// made of what it has read, and may not say what it could not read or write.
const ReconciledCondition = "Reconciled"

const (
	// troubleAfter is how long an error that may pass by itself is retried before the object says so.
	troubleAfter = time.Second
	// rewordAfter is after which time a message is replaced by one of the same reason, and rewordInvalidAfter where a person has changed
	// what was wrong, or something else is.
	rewordAfter, rewordInvalidAfter = time.Minute, time.Second
	// maxMessage bounds a message in bytes.
	maxMessage = 600
)

var troubleTable = condition.Table[trouble]{{Type: ReconciledCondition, Of: trouble.verdict}}

// trouble is why an object cannot be reconciled.
type trouble struct{ reason, message string }

func (t trouble) verdict() condition.Verdict { return condition.False(t.reason, t.message) }

// troubleOf says what an error means for people.
func troubleOf(err error) trouble {
	t := trouble{reason: "ReconcileFailed", message: err.Error()}
	var status apierrors.APIStatus
	switch f := fault.As(err); {
	case f != nil:
		t = trouble{reason: f.Reason, message: f.Message}
	case errors.As(err, &status) && status.Status().Reason != "":
		t.reason = string(status.Status().Reason)
		if created := (*creationError)(nil); errors.As(err, &created) {
			t.message = created.text
		}
	case fault.KindOf(err) == fault.Unreachable:
		t.reason = "Unreachable"
	}
	if len(t.message) > maxMessage {
		t.message = strings.ToValidUTF8(t.message[:maxMessage], "") + " …"
	}
	if first, size := utf8.DecodeRuneInString(t.message); size > 0 {
		t.message = string(unicode.ToUpper(first)) + t.message[size:]
	}
	if fault.KindOf(err) != fault.Invalid { // else nothing but a change helps
		t.message += "; retrying"
	}
	return t
}

// tellAside makes an object say that it is set aside. It writes this condition and reads nothing, so that it cannot end the
// manager as the object's reconciliation does; the next reconciliation that succeeds removes the condition.
func (r *Reconciler[O, S]) tellAside(ctx context.Context, o O) error {
	why := trouble{"SetAside", "The manager ended repeatedly while it reconciled this object, so it retries in up to 1h; " +
		"change or delete the object: its events with reason ManagerCrashed say what happened"}
	status := map[string]any{"conditions": troubleTable.Evaluate(why, r.moment(o))}
	return client.IgnoreNotFound(r.Writer.As(r.Name+"-reconcile").ApplyStatus(ctx, o, status))
}

// shownRefusals is how many values that the API refuses a message names.
const shownRefusals = 3

// accepted is a status without what the API would refuse; refused says what that is.
func (r *Reconciler[O, S]) accepted(o O, status map[string]any) (kept map[string]any, refused error) {
	kind, err := apiutil.GVKForObject(o, r.Client.Scheme())
	if err != nil {
		return status, nil
	}
	kept, values := r.Limits.Bound(kind, status)
	if len(values) == 0 {
		return status, nil
	}
	more := ""
	if n := len(values) - shownRefusals; n > 0 {
		values, more = values[:shownRefusals], fmt.Sprintf("; and %d more", n)
	}
	return kept, fault.New(fault.Invalid, "ValuesRefused", "The status leaves out what the API does not accept: %s%s", strings.Join(values, "; "), more)
}

// failures remembers since when objects fail, and when their conditions were last written. The zero value is ready to use.
type failures struct {
	mu sync.Mutex
	of map[client.ObjectKey]failing
}

type failing struct{ since, written time.Time }

// record records another failure and returns what is known of those before.
func (f *failures) record(key client.ObjectKey, now time.Time) failing {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.of[key]
	if !ok {
		if f.of == nil {
			f.of = map[client.ObjectKey]failing{}
		}
		have.since = now
		f.of[key] = have
	}
	return have
}

// lasts reports whether an object fails by an error that does not pass by itself, or has failed for some time.
func (f *failures) lasts(key client.ObjectKey, now time.Time, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.of[key]
	return fault.KindOf(err) == fault.Invalid || ok && now.Sub(have.since) >= troubleAfter
}

// reported records that the condition was written.
func (f *failures) reported(key client.ObjectKey, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if have, ok := f.of[key]; ok {
		have.written = now
		f.of[key] = have
	}
}

// forget forgets an object that does not fail any more.
func (f *failures) forget(key client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, key)
}

// quiet is after which time a message about an error of the kind is replaced.
func quiet(kind fault.Kind) time.Duration {
	if kind == fault.Invalid {
		return rewordInvalidAfter
	}
	return rewordAfter
}

// reportTrouble writes into the condition that the reconciliation ended in an error, or removes it. A conflict is no error:
// the retry follows at once. As long as nothing fails nothing is written. The plan looks again where a new message comes too soon.
func (r *Reconciler[O, S]) reportTrouble(ctx context.Context, o O, plan *Plan, failed error) error {
	key, now := client.ObjectKeyFromObject(o), r.now()
	have := condition.Set(o.GetConditions()).Get(ReconciledCondition)
	writer := r.Writer.As(r.Name + "-reconcile")
	if failed == nil {
		r.failures.forget(key)
		if have == nil || r.Writer.Writes().Stale(o) { // the event of what was written leads here again
			return nil
		}
		return client.IgnoreNotFound(writer.ApplyStatus(ctx, o, map[string]any{}))
	}
	kind := fault.KindOf(failed)
	if kind == fault.Conflict {
		return failed
	}
	before, t := r.failures.record(key, now), troubleOf(failed)
	switch {
	case kind != fault.Invalid && now.Sub(before.since) < troubleAfter:
		return failed
	case have == nil || have.Reason != t.reason:
	case have.Message == t.message:
		return failed
	case now.Sub(before.written) < quiet(kind):
		plan.RecheckIn(quiet(kind) - now.Sub(before.written))
		return failed
	}
	if err := r.tell(ctx, o, t); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("writing the Reconciled condition failed", "error", err.Error())
		return failed
	}
	r.failures.reported(key, now)
	return failed
}

// reporter writes conditions and events with an identity.
type reporter struct {
	writer *kube.Writer
	events events.EventRecorder
}

// ReportBy lets r report what its own identity may not: with this writer, and this recorder.
func (r *Reconciler[O, S]) ReportBy(w *kube.Writer, recorder events.EventRecorder) {
	r.process = &reporter{writer: w, events: recorder}
}

// withoutRights ends the message where the controller's own identity may not even report.
const withoutRights = "; rights of its controller are missing: `slipway status` names them"

// tell writes the trouble into the condition, and records an event. Where the controller may not do that, its rights may be what is missing:
// the process then does, which reads for all of its providers.
func (r *Reconciler[O, S]) tell(ctx context.Context, o O, t trouble) error {
	by, conditions := reporter{writer: r.Writer, events: r.Events}, troubleTable.Evaluate(t, r.moment(o))
	err := by.apply(ctx, r.Name, o, conditions)
	if apierrors.IsForbidden(err) && r.process != nil {
		t.message += withoutRights
		by, conditions = *r.process, troubleTable.Evaluate(t, r.moment(o))
		if have := condition.Set(o.GetConditions()).Get(ReconciledCondition); have != nil && have.Message == t.message {
			return nil
		}
		err = by.apply(ctx, r.Name, o, conditions)
	}
	if err == nil {
		r.recordBy(by.events, o, Warning(conditions[0].Reason, "%s", t.message))
	}
	return err
}

func (b reporter) apply(ctx context.Context, controller string, o client.Object, conditions []metav1.Condition) error {
	return b.writer.As(controller+"-reconcile").ApplyStatus(ctx, o, map[string]any{"conditions": conditions})
}
