package reconciler

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

// reconciledCondition is False, with the error as its message, on an object whose reconciliation fails. Objects
// without the condition are reconciled successfully. Only the driver writes it, on every kind and with a separate
// field manager, because a controller computes its own conditions from what it could read and cannot report failed
// reads and writes in them.
const reconciledCondition = "Reconciled"

const (
	// troubleAfter is how long a transient error is retried before the condition reports it.
	troubleAfter = time.Second
	// rewordAfter is the minimum age of a message before another message with the same reason replaces it. For
	// invalid input rewordInvalidAfter applies, because the input has changed.
	rewordAfter, rewordInvalidAfter = time.Minute, time.Second
	// maxMessage is the maximum length of a message in bytes.
	maxMessage = 600
)

var reconciledTable = condition.Table[failureReport]{{Type: reconciledCondition, Compute: failureReport.verdict}}

// failureReport is the reason and message of a failed reconciliation.
type failureReport struct{ reason, message string }

func (t failureReport) verdict() condition.Result { return condition.False(t.reason, t.message) }

// failureReportOf converts an error to the reason and message that users read.
func failureReportOf(err error) failureReport {
	t := failureReport{reason: "ReconcileFailed", message: err.Error()}
	var status apierrors.APIStatus
	switch f := fault.As(err); {
	case f != nil:
		t = failureReport{reason: f.Reason, message: f.Message}
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
	if fault.KindOf(err) != fault.Invalid { // only a change of the input resolves invalid input
		t.message += "; retrying"
	}
	return t
}

// reportQuarantine sets the Reconciled condition of a quarantined object. It writes only this condition and reads
// nothing, so that it cannot crash the manager like the object's reconciliation. The next successful reconciliation
// removes the condition.
func (r *Reconciler[O, S]) reportQuarantine(ctx context.Context, o O) error {
	why := failureReport{"SetAside", "The manager ended repeatedly while it reconciled this object, so it retries in up to 1h; " +
		"change or delete the object: its events with reason ManagerCrashed say what happened"}
	status := map[string]any{"conditions": reconciledTable.Evaluate(why, r.moment(o))}
	return client.IgnoreNotFound(r.Writer.WithController(r.Name+"-reconcile").ApplyStatus(ctx, o, status))
}

// shownRefusals limits how many rejected values a message lists.
const shownRefusals = 3

// pruneRejected returns the status without the values that the API would reject; refused lists them.
func (r *Reconciler[O, S]) pruneRejected(o O, status map[string]any) (kept map[string]any, refused error) {
	kind, err := apiutil.GVKForObject(o, r.Client.Scheme())
	if err != nil {
		return status, nil
	}
	kept, values := r.Limits.Prune(kind, status)
	if len(values) == 0 {
		return status, nil
	}
	more := ""
	if n := len(values) - shownRefusals; n > 0 {
		values, more = values[:shownRefusals], fmt.Sprintf("; and %d more", n)
	}
	return kept, fault.New(fault.Invalid, "ValuesRefused", "The status leaves out what the API does not accept: %s%s", strings.Join(values, "; "), more)
}

// failures records how long each object has been failing and when its condition was last written. The zero value is
// ready to use.
type failures struct {
	mu sync.Mutex
	of map[client.ObjectKey]failureRecord
}

type failureRecord struct{ since, written time.Time }

// record records a failure and returns the record from before it, with the start of the current series of failures.
func (f *failures) record(key client.ObjectKey, now time.Time) failureRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.of[key]
	if !ok {
		if f.of == nil {
			f.of = map[client.ObjectKey]failureRecord{}
		}
		have.since = now
		f.of[key] = have
	}
	return have
}

// lasts reports whether the error is permanent or the object has been failing for some time.
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

// forget removes the record of an object that no longer fails.
func (f *failures) forget(key client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, key)
}

// minMessageAge returns the minimum age of a message before another message about an error of this kind replaces it.
func minMessageAge(kind fault.Kind) time.Duration {
	if kind == fault.Invalid {
		return rewordInvalidAfter
	}
	return rewordAfter
}

// reportReconciled sets the Reconciled condition if the reconciliation failed, and removes it otherwise. Conflicts are
// not reported, because they are retried at once. Nothing is written as long as nothing fails. If a new message
// comes too soon after the previous one, the plan schedules a recheck.
func (r *Reconciler[O, S]) reportReconciled(ctx context.Context, o O, plan *Plan, failed error) error {
	key, now := client.ObjectKeyFromObject(o), r.now()
	have := condition.Set(o.GetConditions()).Get(reconciledCondition)
	writer := r.Writer.WithController(r.Name + "-reconcile")
	if failed == nil {
		r.failures.forget(key)
		if have == nil || r.Writer.Writes().Stale(o) { // the event of the last write triggers another reconciliation
			return nil
		}
		return client.IgnoreNotFound(writer.ApplyStatus(ctx, o, map[string]any{}))
	}
	kind := fault.KindOf(failed)
	if kind == fault.Conflict {
		return failed
	}
	before, t := r.failures.record(key, now), failureReportOf(failed)
	switch {
	case kind != fault.Invalid && now.Sub(before.since) < troubleAfter:
		return failed
	case have == nil || have.Reason != t.reason:
	case have.Message == t.message:
		return failed
	case now.Sub(before.written) < minMessageAge(kind):
		plan.RecheckIn(minMessageAge(kind) - now.Sub(before.written))
		return failed
	}
	if err := r.reportFailure(ctx, o, t); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("writing the Reconciled condition failed", "error", err.Error())
		return failed
	}
	r.failures.reported(key, now)
	return failed
}

// reporter writes conditions and events with one identity.
type reporter struct {
	writer *kube.Writer
	events events.EventRecorder
}

// ReportBy sets the writer and recorder for reports that the controller's own identity may not write.
func (r *Reconciler[O, S]) ReportBy(w *kube.Writer, recorder events.EventRecorder) {
	r.process = &reporter{writer: w, events: recorder}
}

// withoutRights is appended to the message if the controller's own identity lacks the permissions to report.
const withoutRights = "; rights of its controller are missing: `slipway status` names them"

// reportFailure writes the condition and records an event. If the controller lacks the permissions to do so, missing
// permissions may be the cause of the error. The manager process, which reads on behalf of all its providers, then
// reports instead.
func (r *Reconciler[O, S]) reportFailure(ctx context.Context, o O, t failureReport) error {
	by, conditions := reporter{writer: r.Writer, events: r.Events}, reconciledTable.Evaluate(t, r.moment(o))
	err := by.apply(ctx, r.Name, o, conditions)
	if apierrors.IsForbidden(err) && r.process != nil {
		t.message += withoutRights
		by, conditions = *r.process, reconciledTable.Evaluate(t, r.moment(o))
		if have := condition.Set(o.GetConditions()).Get(reconciledCondition); have != nil && have.Message == t.message {
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
	return b.writer.WithController(controller+"-reconcile").ApplyStatus(ctx, o, map[string]any{"conditions": conditions})
}
