package hook

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Client is the interface through which controllers call extensions. The Go type of the request determines the hook.
// The manager passes [Extensions], and `slipway plan` a simulation (package world).
type Client interface {
	// Handlers returns the names of the handlers of a hook that apply to an object, as "<handler>.<extension>", in the
	// order in which CallAll calls them.
	Handlers(ctx context.Context, hook hooks.Name, of client.Object) ([]string, error)
	// Call calls one handler by its name. A handler that is not registered or does not apply to the object's
	// namespace is an error of kind Invalid.
	Call(ctx context.Context, of client.Object, handler string, x Invocation) error
	// CallAll calls all handlers of the request's hook one after the other, and stops at the first error. The response
	// has the lowest retryAfterSeconds that is not 0, and the messages of all handlers, but none of their other fields.
	CallAll(ctx context.Context, of client.Object, x Invocation) (CallAllResult, error)
}

// CallAllResult is the result of calling all handlers of a hook. [LifecycleCaller] converts it into the result of a
// lifecycle hook.
type CallAllResult struct {
	// Handlers that responded, as "<handler>.<extension>", in the order of the calls.
	Handlers []string
	// Blocking lists the handlers whose response has retryAfterSeconds.
	Blocking []Blocking
}

// Blocking is a handler that blocks an operation. The topology controller shows its message in a condition.
type Blocking struct {
	Handler, Message string
	// Since is when the handler started to block without interruption. It is held in memory only, so it does not
	// survive a restart of the manager.
	Since time.Time
	// RetryAfter is the remaining time until the handler is to be called again.
	RetryAfter time.Duration
}

// Invocation is a request and the object that receives the response. Controllers fill it in for [Client].Call, and
// [LifecycleCaller] for CallAll.
type Invocation struct {
	// Request is not changed. Its settings override those in the ExtensionConfig.
	Request runtime.Object
	// Response is overwritten when the call succeeds. It must be of the same version of the hook as Request.
	Response hooks.Response

	// CacheKey identifies everything that the response depends on, such as UID and generation of the object and the
	// versions in the request. A response with retryAfterSeconds is returned from the cache until its time has passed
	// or the key changes. If empty, the key is a hash of the request, which changes with every write to the object.
	CacheKey string
	// CacheTTL is how long a response without retryAfterSeconds may be returned from the cache for the same key. It is
	// for hooks that only compute something. 0 disables the cache; the maximum is 24 h.
	CacheTTL time.Duration
	// Accept reports whether a response can be used. An unusable response is not cached, so that a corrected extension
	// is called again. If nil, every response is accepted.
	Accept func(hooks.Response) bool
	// Strict returns failures as errors whatever the failure policy of the handler is. It is for hooks in which an
	// empty response would mean that something was done.
	Strict bool
}

// Policies and limits of handlers. The default timeout is Cluster API's; the other values are our choice.
const (
	// defaultTimeout applies to handlers without a timeout; maxTimeout limits the timeout of any handler, and
	// extensiontools/replay.go repeats it.
	defaultTimeout = 10 * time.Second
	maxTimeout     = 30 * time.Second

	discoveryTimeout = 10 * time.Second
	maxHandlers      = 512

	// callsAtOnce limits concurrent calls to one extension; maxWait is how long another call waits for a permit.
	callsAtOnce = 4
	maxWait     = 200 * time.Millisecond

	// discoveryInterval is the interval between discoveries of a healthy extension.
	discoveryInterval = 10 * time.Minute
	// grace is how long the first discovery of an extension may take before waiting for it is reported to users.
	grace = 15 * time.Second
)
