package extension

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// DefaultTimeout is what a caller grants a handler that names no timeout.
const DefaultTimeout = hooksv1.DefaultHandlersTimeoutSeconds * time.Second

// MaxTimeout is the longest timeout that a handler may ask for.
const MaxTimeout = 30 * time.Second

// Handler is one handler of an extension. Make it with [On] or [OnErr].
type Handler struct {
	// Name is unique within the extension and a DNS label.
	Name string
	// Timeout that the caller is asked for, in whole seconds up to [MaxTimeout]; zero: [DefaultTimeout]. The context
	// of a call ends with it.
	Timeout time.Duration
	// FailurePolicy says what the caller does when the handler cannot be called; empty: Fail.
	FailurePolicy hooksv1.FailurePolicy

	request runtime.Object // an empty one, which names the hook in a catalog
	bind    func(hook hooks.Hook) handlerFunc
}

// handlerFunc answers the body of one request.
type handlerFunc func(ctx context.Context, body []byte) (reply, error)

// reply is what a handler answered. It is an error of the caller when there is none.
type reply struct {
	response hooksv1.ResponseObject
	panicked any
	stack    []byte
}

// request is the constraint of typed requests: a pointer to Q.
type request[Q any] interface {
	*Q
	hooksv1.RequestObject
}

// response is the constraint of typed responses: a pointer to R.
type response[R any] interface {
	*R
	hooksv1.ResponseObject
}

// On returns a handler for a hook. The hook is the function of the API module that stands for it, for instance
// hooksv1.BeforeClusterCreate; do has to take its request and response, which the compiler checks. The response comes
// with status Success; do changes what it wants to say. It may be called by several goroutines at once, and again with
// the same request.
func On[Q, R any, PQ request[Q], PR response[R]](name string, _ func(PQ, PR), do func(context.Context, PQ, PR)) Handler {
	return Handler{Name: name, request: PQ(new(Q)), bind: func(hook hooks.Hook) handlerFunc {
		return func(ctx context.Context, body []byte) (reply, error) {
			in, out := PQ(new(Q)), PR(new(R))
			if err := decode(body, hook, in); err != nil {
				return reply{}, err
			}
			out.SetStatus(hooksv1.ResponseStatusSuccess)
			return guard(out, func() { do(ctx, in, out) }), nil
		}
	}}
}

// OnErr is [On] for a function that returns an error: it becomes a response with status Failure and the text of the error
// as the message, see [Fail].
func OnErr[Q, R any, PQ request[Q], PR response[R]](name string, hook func(PQ, PR), do func(context.Context, PQ, PR) error) Handler {
	return On(name, hook, func(ctx context.Context, in PQ, out PR) {
		if err := do(ctx, in, out); err != nil {
			Log(ctx).Error("the handler returned an error", "error", err)
			Fail(out, err)
		}
	})
}

// WithTimeout returns the handler with a timeout.
func (h Handler) WithTimeout(d time.Duration) Handler {
	h.Timeout = d
	return h
}

// WithFailurePolicy returns the handler with a failure policy.
func (h Handler) WithFailurePolicy(p hooksv1.FailurePolicy) Handler {
	h.FailurePolicy = p
	return h
}

// timeout is the effective one.
func (h Handler) timeout() time.Duration {
	if h.Timeout == 0 {
		return DefaultTimeout
	}
	return h.Timeout
}

// decode reads a request of the kind. Fields that are not known are from a newer caller and are left out.
func decode(body []byte, hook hooks.Hook, into any) error {
	var meta struct{ APIVersion, Kind string }
	if err := json.Unmarshal(body, &meta); err != nil {
		return fmt.Errorf("the request is not JSON: %w", err)
	}
	if meta.APIVersion != hook.APIVersion() || meta.Kind != hook.RequestKind() {
		return fmt.Errorf("the request is a %q of %q; this path takes a %q of %q",
			meta.Kind, meta.APIVersion, hook.RequestKind(), hook.APIVersion())
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the request is not a valid %s: %w", hook.RequestKind(), err)
	}
	return nil
}

// complete gives a response its kind and refuses what no caller would accept.
func complete(r hooksv1.ResponseObject, hook hooks.Hook) error {
	hook.StampResponse(r)
	switch r.GetStatus() {
	case hooksv1.ResponseStatusSuccess, hooksv1.ResponseStatusFailure:
	case "":
		r.SetStatus(hooksv1.ResponseStatusSuccess)
	default:
		return fmt.Errorf("the status %q is neither Success nor Failure", r.GetStatus())
	}
	if retry, ok := r.(hooksv1.RetryResponseObject); ok && retry.GetRetryAfterSeconds() < 0 {
		return errors.New("retryAfterSeconds is negative")
	}
	return nil
}
