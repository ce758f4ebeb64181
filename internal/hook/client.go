package hook

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Client is what controllers need of the extensions. The Go type of the request says which hook is called.
type Client interface {
	// Handlers names the handlers of a hook that apply to an object, "<handler>.<extension>", in the order in which
	// CallAll calls them.
	Handlers(ctx context.Context, hook hooks.Name, of client.Object) ([]string, error)
	// Call calls one handler by its name. A handler that is not registered or does not apply to the object's
	// namespace is an error of kind Invalid.
	Call(ctx context.Context, of client.Object, handler string, x Exchange) error
	// CallAll calls all handlers of the request's hook one after the other, and stops at the first error. The
	// response gets the lowest retryAfterSeconds that is not 0, and all messages; nothing else of the answers.
	CallAll(ctx context.Context, of client.Object, x Exchange) (Called, error)
}

// Called is what is known of the handlers after a call of all of them.
type Called struct {
	// Handlers that answered, "<handler>.<extension>", in the order of the calls.
	Handlers []string
	// Blocking are those whose answer has retryAfterSeconds.
	Blocking []Blocking
}

// Blocking is a handler that holds something back.
type Blocking struct {
	Handler, Message string
	// Since is when it first did, without a break, as far as this process knows.
	Since time.Time
	// RetryAfter is what is left of the time after which it asks to be called again.
	RetryAfter time.Duration
}

// Exchange is a request and where its response goes.
type Exchange struct {
	// Request is not changed. Its settings win over those of the ExtensionConfig.
	Request runtime.Object
	// Response is overwritten when the call succeeds. It is of the same version of the hook as Request.
	Response hooks.Response

	// Input names what the answer depends on, such as UID and generation of the object and the versions in the request.
	// An answer with retryAfterSeconds is given again, without a call, until its time is over or the input changes.
	// Empty: the whole request, which changes with every write to the object.
	Input string
	// Reuse is how long an answer without retryAfterSeconds may be given again for the same input: for hooks that only
	// compute something. 0: never. At most 24 h.
	Reuse time.Duration
	// Accept reports whether an answer can be used. One that cannot is not kept, so that a corrected extension is called. nil: each can.
	Accept func(hooks.Response) bool
	// Strict: a failure is an error whatever the failure policy of the handler is, for hooks in which an answer without content would
	// say that something was done.
	Strict bool
}

// handler policies and limits.
const (
	// DefaultTimeout of a handler that names none, MaxTimeout of any.
	DefaultTimeout = 10 * time.Second
	MaxTimeout     = 30 * time.Second

	discoveryTimeout = 10 * time.Second
	maxHandlers      = 512

	// callsAtOnce is how many calls to one extension are under way at once, maxWait how long another one waits for a permit.
	callsAtOnce = 4
	maxWait     = 200 * time.Millisecond

	// rediscover is how often the handlers of a healthy extension are discovered again.
	rediscover = 10 * time.Minute
	// grace is how long the first discovery of an extension may take before a wait for it is something to tell people.
	grace = 15 * time.Second
)
