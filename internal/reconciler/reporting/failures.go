package reporting

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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// object is an object whose conditions are in status.conditions.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
}

var reconciledTable = condition.Table[failure]{{Type: reconciledCondition, Compute: failure.result}}

// failure is the reason and message of a failed reconciliation.
type failure struct{ reason, message string }

func (t failure) result() condition.Result { return condition.False(t.reason, t.message) }

func (t failure) conditions(o object, now time.Time) []metav1.Condition {
	return reconciledTable.Evaluate(t, evaluateOptions(o, now))
}

// creationError is the error of an attempt to create objects with generated names, with a text that is the same on
// every attempt.
type creationError struct {
	error
	text string
}

// Unwrap returns the original error, which contains the generated names.
func (e *creationError) Unwrap() error { return e.error }

// CreationError wraps the error of an attempt to create objects of a kind. The condition omits their generated names,
// which differ on every attempt, so that a persistent rejection produces one stable message. The driver calls it when
// an action of a controller fails to create objects.
func CreationError(err error, kind string, names []string) error {
	text := fmt.Sprintf("creating objects of kind %s: %s", kind, strings.Join(kube.FailureMessages(err, names...), "; "))
	return &creationError{error: err, text: text}
}

// failureOf converts an error to the reason and message that users read.
func failureOf(err error) failure {
	t := failure{reason: "ReconcileFailed", message: err.Error()}
	var status apierrors.APIStatus
	switch f := fault.As(err); {
	case f != nil:
		t = failure{reason: f.Reason, message: f.Message}
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

// Identity writes conditions and events on behalf of one identity. The driver creates one for each controller, and
// another one if Setup.Process is set.
type Identity struct {
	// Writer writes with the field manager of the Reconciled condition.
	Writer *kube.Writer
	Record func(o client.Object, e Event)
}

func (i Identity) apply(ctx context.Context, o object, conditions []metav1.Condition) error {
	return i.Writer.ApplyStatus(ctx, o, map[string]any{"conditions": conditions})
}

// Quarantine sets the Reconciled condition of a quarantined object. It writes only this condition and reads
// nothing, so that it cannot crash the manager like the object's reconciliation. The next successful reconciliation
// removes the condition. The driver calls it instead of a reconciliation.
func (i Identity) Quarantine(ctx context.Context, o object, now time.Time) error {
	why := failure{"SetAside", "The manager crashed repeatedly while it reconciled this object; retrying in up to 1h. " +
		"Change or delete the object: its events with reason ManagerCrashed describe the crashes"}
	return client.IgnoreNotFound(i.apply(ctx, o, why.conditions(o, now)))
}

// Failures records how long the reconciliation of each object has been failing, and writes the Reconciled condition.
// The driver (package reconciler) reports the result of each reconciliation to it. The zero value is ready to use.
type Failures struct {
	mu sync.Mutex
	of map[client.ObjectKey]failureRecord
}

// failureRecord is the start of the current series of failures and the time of the last written condition.
type failureRecord struct{ since, written time.Time }

// Persist reports whether the error of an object is permanent, or the object has been failing for some time. The driver
// calls it before it reports a failed read in the status.
func (f *Failures) Persist(key client.ObjectKey, now time.Time, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.of[key]
	return fault.KindOf(err) == fault.Invalid || ok && now.Sub(have.since) >= troubleAfter
}

// Forget removes the record of an object that no longer exists.
func (f *Failures) Forget(key client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, key)
}

// record returns the record of a failing object after an update. The function update may be nil.
func (f *Failures) record(key client.ObjectKey, now time.Time, update func(*failureRecord)) failureRecord {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.of[key]
	if !ok {
		have.since = now
	}
	if update != nil {
		update(&have)
	}
	if f.of == nil {
		f.of = map[client.ObjectKey]failureRecord{}
	}
	f.of[key] = have
	return have
}

// Succeeded removes the condition after a successful reconciliation. The driver calls it.
func (f *Failures) Succeeded(ctx context.Context, i Identity, o object) error {
	f.Forget(client.ObjectKeyFromObject(o))
	if condition.Set(o.GetConditions()).Get(reconciledCondition) == nil || i.Writer.Writes().Stale(o) {
		return nil // the event of the last write triggers another reconciliation
	}
	return client.IgnoreNotFound(i.Writer.ApplyStatus(ctx, o, map[string]any{}))
}

// Failed sets the condition after a failed reconciliation. The identities are tried in turn if they lack permissions.
// Conflicts are not reported, because they are retried at once. If the message changes too soon after the previous one,
// Failed returns the time after which the object is to be reconciled again.
func (f *Failures) Failed(ctx context.Context, by []Identity, o object, now time.Time, failed error) (recheck time.Duration) {
	kind, minAge := fault.KindOf(failed), rewordAfter
	if kind == fault.Conflict {
		return 0
	}
	if kind == fault.Invalid {
		minAge = rewordInvalidAfter
	}
	key := client.ObjectKeyFromObject(o)
	before, t := f.record(key, now, nil), failureOf(failed)
	have := condition.Set(o.GetConditions()).Get(reconciledCondition)
	switch {
	case kind != fault.Invalid && now.Sub(before.since) < troubleAfter:
		return 0
	case have == nil || have.Reason != t.reason:
	case have.Message == t.message:
		return 0
	case now.Sub(before.written) < minAge:
		return minAge - now.Sub(before.written)
	}
	if err := report(ctx, by, o, now, t); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("writing the Reconciled condition failed", "error", err.Error())
		return 0
	}
	f.record(key, now, func(r *failureRecord) { r.written = now })
	return 0
}

// withoutPermissions is appended to the message if the controller's own identity lacks the permissions to report.
const withoutPermissions = "; its controller lacks permissions: `slipway status` lists them"

// report writes the condition and records an event. If the controller lacks the permissions to do so, missing
// permissions may be the cause of the error. The next identity, which is the manager process that reads on behalf of
// all its providers, then reports instead.
func report(ctx context.Context, by []Identity, o object, now time.Time, t failure) error {
	var err error
	for n, i := range by {
		if n > 0 {
			t.message += withoutPermissions
			if have := condition.Set(o.GetConditions()).Get(reconciledCondition); have != nil && have.Message == t.message {
				return nil
			}
		}
		conditions := t.conditions(o, now)
		if err = i.apply(ctx, o, conditions); err == nil {
			i.Record(o, Warning(conditions[0].Reason, "%s", t.message))
		}
		if !apierrors.IsForbidden(err) {
			return err
		}
	}
	return err
}
