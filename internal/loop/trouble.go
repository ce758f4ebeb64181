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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
)

// ReconciledCondition is False on an object whose reconciliation ends in an error, and says why. An object without it is
// reconciled. The driver alone writes it, under a field manager of its own, on every kind: whatever a controller could not
// read or write, its own conditions may say nothing of it, since they are made of what was read.
const ReconciledCondition = "Reconciled"

const (
	// troubleAfter is how long an error that may pass by itself is retried before the object says so.
	troubleAfter = time.Second
	// retoldAfter is how long what an object says of an error stays, where only the words of the error change.
	retoldAfter = time.Minute
	// longestTrouble bounds a message in bytes.
	longestTrouble = 600
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
	case fault.KindOf(err) == fault.Unreachable:
		t.reason = "Unreachable"
	}
	if len(t.message) > longestTrouble {
		t.message = strings.ToValidUTF8(t.message[:longestTrouble], "") + " …"
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

// failures remembers since when objects fail, and when they last said so. The zero value is ready to use.
type failures struct {
	mu sync.Mutex
	of map[client.ObjectKey]failing
}

type failing struct{ since, told time.Time }

// note notes another failure and returns what is known of those before.
func (f *failures) note(key client.ObjectKey, now time.Time) failing {
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

func (f *failures) told(key client.ObjectKey, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if have, ok := f.of[key]; ok {
		have.told = now
		f.of[key] = have
	}
}

// over forgets an object that does not fail any more.
func (f *failures) over(key client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, key)
}

// tell makes an object say that its reconciliation ended in an error, or no more. A conflict is no error: the next try
// follows at once. What is written costs nothing while all goes well.
func (r *Reconciler[O, S]) tell(ctx context.Context, o O, failed error) error {
	key, now := client.ObjectKeyFromObject(o), r.now()
	said := condition.Set(o.GetConditions()).Get(ReconciledCondition)
	writer := r.Writer.As(r.Name + "-reconcile")
	if failed == nil {
		r.failures.over(key)
		if said == nil || r.Writer.Writes().Stale(o) { // the event of what was written leads here again
			return nil
		}
		return client.IgnoreNotFound(writer.ApplyStatus(ctx, o, map[string]any{}))
	}
	kind := fault.KindOf(failed)
	if kind == fault.Conflict {
		return failed
	}
	before, t := r.failures.note(key, now), troubleOf(failed)
	switch {
	case kind != fault.Invalid && now.Sub(before.since) < troubleAfter:
		return failed
	case said != nil && said.Reason == t.reason && (said.Message == t.message || now.Sub(before.told) < retoldAfter):
		return failed
	}
	conditions := troubleTable.Evaluate(t, r.moment(o))
	if err := writer.ApplyStatus(ctx, o, map[string]any{"conditions": conditions}); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("what failed could not be written into the status", "error", err.Error())
		return failed
	}
	r.failures.told(key, now)
	r.record(o, Warning(conditions[0].Reason, "%s", conditions[0].Message))
	return failed
}
