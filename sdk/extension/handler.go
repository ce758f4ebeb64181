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

// DefaultTimeout is the timeout of a handler that does not specify one.
const DefaultTimeout = hooksv1.DefaultHandlersTimeoutSeconds * time.Second

// MaxTimeout is the maximum timeout of a handler.
const MaxTimeout = 30 * time.Second

// Handler is a handler of an extension. Create it with [On] or [OnErr].
type Handler struct {
	// Name is a DNS label, unique within the extension.
	Name string
	// Timeout is the timeout of a call in whole seconds, up to [MaxTimeout]; zero means [DefaultTimeout]. The context
	// of a call ends with it.
	Timeout time.Duration
	// FailurePolicy determines what the caller does if the call of the handler fails; default Fail.
	FailurePolicy hooksv1.FailurePolicy

	request runtime.Object // an empty request, which identifies the hook in a catalog
	bind    func(hook hooks.Hook) handlerFunc
}

// handlerFunc handles the body of a request.
type handlerFunc func(ctx context.Context, body []byte) (reply, error)

// reply is the result of a handler.
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

// On returns a handler for a hook. The hook is identified by its function in the API module, for example
// hooksv1.BeforeClusterCreate; the compiler checks that do has the matching request and response types. The response
// initially has status Success; do modifies it. do may be called concurrently, and repeatedly with the same request.
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

// OnErr is [On] for a function that returns an error. An error results in a response with status Failure and the text
// of the error as message; see [Fail].
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

// timeout returns the effective timeout.
func (h Handler) timeout() time.Duration {
	if h.Timeout == 0 {
		return DefaultTimeout
	}
	return h.Timeout
}

// decode decodes a request of the kind. Unknown fields are from a newer caller, and are ignored.
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

// complete sets the kind of a response, and returns an error if a caller would not accept it.
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
