package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Kind is the class of an error, which determines how a caller can react.
type Kind int

const (
	// Transient is the default for all other errors: retry with backoff.
	Transient Kind = iota
	// Conflict means that another writer changed the object first: read it and decide again.
	Conflict
	// Gone means that the object does not exist any more.
	Gone
	// Unreachable means that a system outside the management cluster does not respond. It is not an error of the object
	// that waits for it.
	Unreachable
	// Invalid means that a user has to change something before a retry can succeed.
	Invalid
	// Bug means that the program itself is wrong.
	Bug
)

func (k Kind) String() string {
	return [...]string{"Transient", "Conflict", "Gone", "Unreachable", "Invalid", "Bug"}[k]
}

// Fault is an error with a kind, a reason for conditions and events, and a message for users. All packages return it
// for errors that a user or a caller can act on.
type Fault struct {
	Kind Kind
	// Reason is CamelCase and stable, for use in conditions and events.
	Reason string
	// Message describes the problem and how to correct it. It contains no times and no names that change with each
	// attempt.
	Message string
	// RetryAfter is the delay after which a retry makes sense; zero if it is unknown.
	RetryAfter time.Duration
	// Details are key/value pairs for the log.
	Details []any
	// Cause is the underlying error. It may be nil.
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

// With returns the fault with more key/value pairs for the log. Package reconciler logs them.
func (f *Fault) With(keysAndValues ...any) *Fault {
	c := *f
	c.Details = append(append([]any{}, f.Details...), keysAndValues...)
	return &c
}

// RetryIn returns the fault with the delay after which a retry makes sense. Controllers requeue after [RetryAfter].
func (f *Fault) RetryIn(d time.Duration) *Fault {
	c := *f
	c.RetryAfter = d
	return &c
}

// RetryAfter returns the retry delay of the outermost fault in err's chain; zero if it is unknown.
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

// KindOf returns the kind of err: the kind of the outermost fault in its chain, or else the kind that follows from an
// error of the Kubernetes API or the network, or else Transient. Package reconciler chooses the next reconciliation by
// it, and package cli the exit code of a command.
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
	case isNetwork(err), isTimeout(err):
		return Unreachable
	}
	return Transient
}

func isNetwork(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) || errors.As(err, &dns)
}

// isTimeout reports whether err is the timeout of a connection, such as a TLS handshake or a response that takes too
// long. An error number of the operating system alone is none, because a file that is locked (EAGAIN) also reports a
// timeout.
func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	for timeout := net.Error(nil); errors.As(err, &timeout); err = errors.Unwrap(timeout) {
		if _, isNumber := timeout.(syscall.Errno); timeout.Timeout() && !isNumber {
			return true
		}
	}
	return false
}

// WithHint returns an error with the hint before its message. In contrast to an error that wraps a fault, users see the
// hint ([UserMessage]).
func WithHint(err error, hint string) error {
	f := As(err)
	if f == nil {
		return fmt.Errorf("%s: %w", hint, err)
	}
	c := *f
	c.Message = hint + ": " + f.Message
	return &c
}

// UserMessage returns the message of err for users: the message of the outermost fault, or else the text of the error.
// Commands print it, and controllers use it as the message of a condition.
func UserMessage(err error) string {
	if f := As(err); f != nil {
		return f.Message
	}
	return err.Error()
}
