package hook

import (
	"cmp"
	"fmt"
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

// Unknown says of a handler that serves no hook of the catalog what becomes of it.
func (h Handler) Unknown() string {
	return fmt.Sprintf("handler %s serves %s of %s, which this version of Slipway does not know, and holds back what it would be called for",
		h.Name, clip(h.Hook.Hook), clip(h.Hook.APIVersion()))
}

// path is where the handler is served.
func (h Handler) path() string { return h.Hook.Path(h.Name) }

// compareHandlers orders the handlers of an extension: an extension may list them in another order each time.
func compareHandlers(a, b Handler) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hook.String(), b.Hook.String()))
}

// HandlerName returns the name by which a handler is called.
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

// settingsOf reads a spec. What cannot be used is a fault of kind Invalid.
func settingsOf(c *runtimev1.ExtensionConfig) (settings, error) {
	s := settings{uid: c.UID, generation: c.Generation, created: c.CreationTimestamp, values: c.Spec.Settings,
		selector: labels.Everything()}
	if c.Spec.NamespaceSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(c.Spec.NamespaceSelector)
		if err != nil {
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
	permits chan struct{}
	// circuit is open while the extension cannot be reached.
	circuit *breaker.Breaker
	// circuits of the handlers, by their paths: open while the extension is reached and gives no answer that can be used.
	circuits map[string]*breaker.Breaker

	settings settings
	// conn is nil while there were never settings that can be used; problem says why.
	conn    *wire.Conn
	problem *fault.Fault
	// handlers of the last discovery that succeeded; discovered is false if none did.
	handlers   []Handler
	discovered bool
	announced  time.Time
	attempt    attempt
	refresh    string // the request of the last discovery, see RefreshOf
	refreshes  int    // how many requests there were: answers from before the last are not used
	unread     string // fields of its answers that were logged last
	calls      int    // that wait for their answer
	followed   int64  // the generation of the settings that followers were called for last
}

// attempt is the last discovery.
type attempt struct {
	generation int64
	failed     int // in a row
	at, next   time.Time
	problem    *fault.Fault
	// hurried is set once a handler that is not served brought the next discovery forward; early counts the discoveries
	// in a row that came so.
	hurried bool
	early   int
}

// State is what the controller reports of an extension.
type State struct {
	// Generation of the ExtensionConfig that was last discovered; 0: none yet.
	Generation int64
	// Next is when to ask again. It is in the past where a new spec, or a circuit, asks for it.
	Next time.Time
	// Refreshed is the request that the last discovery was made for, as RefreshOf names it; empty: none.
	Refreshed string
	// Problem of the last discovery, nil if it succeeded.
	Problem *fault.Fault
	// Discovered is whether one ever succeeded, Handlers what the last such one found, sorted by name.
	Discovered bool
	Handlers   []Handler
	// Unknown are those of the handlers that serve a hook, or a version of one, that is not in the catalog.
	Unknown []Handler
	// Circuit is open while the extension cannot be reached, Failing are the handlers whose own circuit is open.
	Circuit breaker.State
	Failing []Failing
}

// Failing is a handler that is not called for a while.
type Failing struct {
	Handler string
	Circuit breaker.State
}

// Stale reports whether the handlers are of an earlier discovery than the last.
func (s State) Stale() bool { return s.Discovered && s.Problem != nil }

func (x *extension) state(catalog *hooks.Catalog) State {
	s := State{
		Generation: x.attempt.generation, Next: x.attempt.next, Refreshed: x.refresh, Problem: x.attempt.problem,
		Discovered: x.discovered, Handlers: x.handlers, Circuit: x.circuit.State(),
	}
	for _, h := range x.handlers {
		if _, known := catalog.Hook(h.Hook); !known {
			s.Unknown = append(s.Unknown, h)
		}
		if c := x.circuits[h.path()].State(); c.Open {
			s.Failing = append(s.Failing, Failing{Handler: h.Name, Circuit: c})
		}
	}
	if s.Problem == nil && s.Circuit.Open && s.Circuit.RetryAt.Before(s.Next) {
		s.Next = s.Circuit.RetryAt // discovery is the probe: it holds up no controller
	}
	return s
}

// open reports whether a circuit is.
func (x *extension) open() bool {
	for _, c := range x.circuits {
		if c.State().Open {
			return true
		}
	}
	return x.circuit.State().Open
}

// target is one handler at the moment of a call.
type target struct {
	*extension
	settings settings
	conn     *wire.Conn
	problem  *fault.Fault
	circuits [2]*breaker.Breaker // of the handler, of the extension
	handler  Handler
	fresh    int // refreshes of the extension
}

// at returns the target of a handler. The registry's mutex must be held.
func (x *extension) at(h Handler) target {
	return target{
		extension: x, settings: x.settings, conn: x.conn, problem: x.problem, handler: h, fresh: x.refreshes,
		circuits: [2]*breaker.Breaker{x.circuits[h.path()], x.circuit},
	}
}

func (t target) String() string { return HandlerName(t.handler.Name, t.name) }
