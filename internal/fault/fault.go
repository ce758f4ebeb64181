package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Kind says what a caller can do about an error.
type Kind int

const (
	// Transient is every error of which nothing better is known: retry with backoff.
	Transient Kind = iota
	// Conflict means that another writer was first: read again, then decide again.
	Conflict
	// Gone means that the object acted upon does not exist any more.
	Gone
	// Unreachable means that a system outside the management cluster does not answer. Waiting for it is
	// not an error of the object that waits.
	Unreachable
	// Invalid means that a person has to change something before a retry makes sense.
	Invalid
	// Bug means that the program itself is wrong.
	Bug
)

// String returns the kind's name.
func (k Kind) String() string {
	return [...]string{"Transient", "Conflict", "Gone", "Unreachable", "Invalid", "Bug"}[k]
}

// Fault is an error with a kind, a reason for conditions and events, and a message for users.
type Fault struct {
	Kind Kind
	// Reason is CamelCase, stable, and fit for a condition or an event.
	Reason string
	// Message says what is wrong and what to do about it. It holds no times and no names that change
	// from one try to the next.
	Message string
	// RetryAfter is after which time a retry makes sense; zero: nothing is known of it.
	RetryAfter time.Duration
	// Details are key/value pairs for the log.
	Details []any
	// Cause is what the fault was made from. May be nil.
	Cause error
}

// New returns a fault; message is formatted with args.
func New(kind Kind, reason, message string, args ...any) *Fault {
	return &Fault{Kind: kind, Reason: reason, Message: fmt.Sprintf(message, args...)}
}

// From returns the fault with err as its cause.
func (f *Fault) From(err error) *Fault {
	c := *f
	c.Cause = err
	return &c
}

// With returns the fault with more key/value pairs for the log.
func (f *Fault) With(keysAndValues ...any) *Fault {
	c := *f
	c.Details = append(append([]any{}, f.Details...), keysAndValues...)
	return &c
}

// RetryIn returns the fault with the time after which a retry makes sense.
func (f *Fault) RetryIn(d time.Duration) *Fault {
	c := *f
	c.RetryAfter = d
	return &c
}

// RetryAfter returns after which time a retry makes sense, by the outermost fault in err's chain; zero: nothing is known of it.
func RetryAfter(err error) time.Duration {
	if f := As(err); f != nil {
		return f.RetryAfter
	}
	return 0
}

// Error implements error: the message, then the cause.
func (f *Fault) Error() string {
	if f.Cause == nil {
		return f.Message
	}
	return f.Message + ": " + f.Cause.Error()
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Is reports whether target is a fault of the same kind and reason, so that a fault can serve as a
// sentinel.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Kind == f.Kind && t.Reason == f.Reason
}

// As returns the outermost fault in err's chain, or nil.
func As(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	return nil
}

// KindOf returns the kind of err: that of the outermost fault in its chain, else what the Kubernetes API
// or the network said, else Transient.
func KindOf(err error) Kind {
	if f := As(err); f != nil {
		return f.Kind
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return Conflict
	case apierrors.IsNotFound(err), apierrors.IsGone(err):
		return Gone
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return Invalid
	case isNetwork(err), errors.Is(err, context.DeadlineExceeded):
		return Unreachable
	}
	return Transient
}

func isNetwork(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns)
}

// UserMessage returns what a user should read of err: the fault's message where there is one, else the
// text of the error.
func UserMessage(err error) string {
	if f := As(err); f != nil {
		return f.Message
	}
	return err.Error()
}
