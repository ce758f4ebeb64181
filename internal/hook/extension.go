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
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Handler is one handler of an extension, from a discovery or from the status of the ExtensionConfig. The
// ExtensionConfig controller writes the handlers to the status with [StatusHandlers].
type Handler struct {
	// Name of the handler as the extension returned it, a DNS label.
	Name string
	// Hook that the handler serves, in the version in which it expects requests.
	Hook hooks.ID
	// Timeout of a call, more than 0 and at most maxTimeout.
	Timeout time.Duration
	// Policy is Fail or Ignore.
	Policy runtimev1.FailurePolicy
}

// Unknown returns a message for a handler whose hook is not in the catalog. The ExtensionConfig controller reports it
// in a condition.
func (h Handler) Unknown() string {
	return fmt.Sprintf("handler %s serves %s of %s, which this version of Slipway does not support; operations that would call it are blocked",
		h.Name, clip(h.Hook.Hook), clip(h.Hook.APIVersion()))
}

// path returns the URL path of the handler.
func (h Handler) path() string { return h.Hook.Path(h.Name) }

// compareHandlers orders the handlers of an extension, because an extension may list them in a different order each
// time.
func compareHandlers(a, b Handler) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Hook.String(), b.Hook.String()))
}

// handlerName returns the full name of a handler, as ClusterClasses and the status of ExtensionConfigs contain it.
// Cluster API defines its form.
func handlerName(handler, extension string) string { return handler + "." + extension }

// settings holds the relevant part of an ExtensionConfig's spec. It is immutable. The registry replaces it when the
// spec changes.
type settings struct {
	uid        types.UID
	generation int64
	created    metav1.Time
	endpoint   Endpoint
	selector   labels.Selector
	values     map[string]string
}

// settingsOf parses a spec. An invalid field is a fault of kind Invalid.
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
	s.endpoint, err = EndpointOf(c.Spec.ClientConfig)
	return s, err
}

// extension is the state of one ExtensionConfig in the registry [Extensions]. The registry's mutex protects the fields
// that change.
type extension struct {
	name    string
	permits chan struct{}
	// circuit is open while the extension cannot be reached.
	circuit *breaker
	// circuits of the handlers, by their paths: open while the extension is reached but returns no usable response.
	circuits map[string]*breaker

	settings settings
	// conn is nil until the spec is valid for the first time; problem holds the reason.
	conn    *Conn
	problem *fault.Fault
	// handlers of the last successful discovery; discovered is false if none succeeded.
	handlers           []Handler
	discovered         bool
	announced          time.Time
	attempt            discoveryAttempt
	refresh            string // value of RefreshRequest at the last discovery
	refreshes          int    // number of refresh requests; cached responses from before the last one are not used
	unread             string // unknown fields of its responses that were logged last
	notifiedGeneration int64  // generation of the settings for which followers were last called
}

// discoveryAttempt is the last discovery.
type discoveryAttempt struct {
	generation int64
	failed     int // consecutive failures
	at, next   time.Time
	problem    *fault.Fault
	// scheduledEarly is set when a handler that is not served scheduled the next discovery earlier; early counts
	// consecutive discoveries of this kind.
	scheduledEarly bool
	early          int
}

// ExtensionState is the state of an extension. The ExtensionConfig controller reports it in the status of the
// ExtensionConfig, and decides by it when to discover again.
type ExtensionState struct {
	// Generation of the ExtensionConfig at the last discovery; 0 if there was none.
	Generation int64
	// Next is the time of the next discovery. It is in the past if a new spec or a circuit breaker requests one.
	Next time.Time
	// Refreshed is the refresh request that the last discovery served, as returned by RefreshRequest, or empty.
	Refreshed string
	// Problem of the last discovery, nil if it succeeded.
	Problem *fault.Fault
	// Discovered reports whether a discovery ever succeeded; Handlers is the result of the last successful one, sorted
	// by name.
	Discovered bool
	Handlers   []Handler
	// Unknown lists the handlers whose hook, or version of it, is not in the catalog.
	Unknown []Handler
	// Circuit is open while the extension cannot be reached; Failing lists the handlers whose own circuit is open.
	Circuit BreakerState
	Failing []Failing
}

// Failing is a handler whose circuit is open. The ExtensionConfig controller lists them in a condition.
type Failing struct {
	Handler string
	Circuit BreakerState
}

// Stale reports whether the handlers are from an earlier discovery than the last.
func (s ExtensionState) Stale() bool { return s.Discovered && s.Problem != nil }

func (x *extension) state(catalog *hooks.Catalog) ExtensionState {
	s := ExtensionState{
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
		s.Next = s.Circuit.RetryAt // discovery is the probe, so that no controller waits for it
	}
	return s
}

// open reports whether any circuit of the extension is open.
func (x *extension) open() bool {
	for _, c := range x.circuits {
		if c.State().Open {
			return true
		}
	}
	return x.circuit.State().Open
}

// target is a snapshot of one handler for a call.
type target struct {
	*extension
	settings settings
	conn     *Conn
	problem  *fault.Fault
	circuits [2]*breaker // of the handler, of the extension
	handler  Handler
	fresh    int // number of refreshes of the extension
}

// at returns the target for a handler. The registry's mutex must be held.
func (x *extension) at(h Handler) target {
	return target{
		extension: x, settings: x.settings, conn: x.conn, problem: x.problem, handler: h, fresh: x.refreshes,
		circuits: [2]*breaker{x.circuits[h.path()], x.circuit},
	}
}

func (t target) String() string { return handlerName(t.handler.Name, t.name) }
