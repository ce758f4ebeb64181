package hook

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook/breaker"
	"github.com/slipwayhq/slipway/internal/hook/wire"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Handler is one handler of an extension.
type Handler struct {
	// Name as the extension says it, a DNS label.
	Name string
	// Hook that it serves, in the version that it wants its requests in.
	Hook hooks.ID
	// Timeout of a call, more than 0 and at most MaxTimeout.
	Timeout time.Duration
	// Policy is Fail or Ignore.
	Policy runtimev1.FailurePolicy
}

// HandlerName returns the name by which a handler is called (RT-08).
func HandlerName(handler, extension string) string { return handler + "." + extension }

// settings is what the spec of an ExtensionConfig says. It never changes.
type settings struct {
	uid        types.UID
	generation int64
	created    metav1.Time
	endpoint   wire.Endpoint
	selector   labels.Selector
	values     map[string]string
}

// settingsOf reads a spec. What cannot be used is a fault of kind Invalid; a selector that cannot be read selects nothing.
func settingsOf(c *runtimev1.ExtensionConfig) (settings, error) {
	s := settings{uid: c.UID, generation: c.Generation, created: c.CreationTimestamp, values: c.Spec.Settings,
		selector: labels.Everything()}
	if c.Spec.NamespaceSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(c.Spec.NamespaceSelector)
		if err != nil {
			s.selector = labels.Nothing()
			return s, fault.New(fault.Invalid, "InvalidNamespaceSelector", "spec.namespaceSelector cannot be used: %v", err)
		}
		s.selector = selector
	}
	var err error
	s.endpoint, err = wire.EndpointOf(c.Spec.ClientConfig)
	return s, err
}

// extension is all that is known of one ExtensionConfig. The registry's mutex protects the fields that change.
type extension struct {
	name    string
	breaker *breaker.Breaker
	slots   chan struct{}

	settings settings
	conn     *wire.Conn // nil while the settings are of no use
	// handlers of the last discovery that succeeded; discovered is false if none did.
	handlers   []Handler
	discovered bool
	announced  time.Time
	attempt    attempt
	unread     string // fields of its answers that were logged last
	calls      int    // that wait for their answer
}

// attempt is the last discovery.
type attempt struct {
	generation int64
	failed     int // in a row
	next       time.Time
	problem    *fault.Fault
}

// State is what the controller reports of an extension.
type State struct {
	// Generation of the ExtensionConfig that was last asked for its handlers; 0: none yet.
	Generation int64
	// Next is when to ask again. It is in the past where a new spec, or a circuit, asks for it.
	Next time.Time
	// Problem of the last discovery, nil if it succeeded.
	Problem *fault.Fault
	// Discovered is whether one ever succeeded, Handlers what the last such one found.
	Discovered bool
	Handlers   []Handler
	// Circuit of the calls.
	Circuit breaker.State
}

// Stale reports whether the handlers are of an earlier discovery than the last.
func (s State) Stale() bool { return s.Discovered && s.Problem != nil }

func (x *extension) state() State {
	s := State{
		Generation: x.attempt.generation, Next: x.attempt.next, Problem: x.attempt.problem,
		Discovered: x.discovered, Handlers: x.handlers, Circuit: x.breaker.State(),
	}
	if s.Problem == nil && s.Circuit.Open && s.Circuit.Cause.Unconnected && s.Circuit.RetryAt.Before(s.Next) {
		s.Next = s.Circuit.RetryAt // discovery is the trial that costs nobody anything
	}
	return s
}

// target is one handler at the moment of a call.
type target struct {
	*extension
	settings settings
	conn     *wire.Conn
	circuit  *breaker.Breaker
	handler  Handler
}

// at returns the target of a handler. The registry's mutex must be held.
func (x *extension) at(h Handler) target {
	return target{extension: x, settings: x.settings, conn: x.conn, circuit: x.breaker, handler: h}
}

func (t target) String() string { return HandlerName(t.handler.Name, t.name) }
