package hook

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/lru"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Config configures Extensions. Fields are optional unless stated otherwise. The manager and `slipway plan` fill it in,
// and so does `slipway extension call`.
type Config struct {
	// Catalog of the hooks. Defaults to the hooks of Cluster API.
	Catalog *hooks.Catalog
	// NamespaceLabels reads the labels of a namespace, to match namespaceSelectors. Required.
	NamespaceLabels func(ctx context.Context, namespace string) (labels.Set, error)
	// Certificates is the client certificate to present; nil for none.
	Certificates *ClientCertificates
	// Registerer of the metrics; nil to not export them.
	Registerer prometheus.Registerer
	// Tracer creates one span for each call. Defaults to the tracer of the global provider.
	Tracer trace.Tracer
	// Now defaults to time.Now.
	Now func() time.Time
	// Random returns a number in [0,1), for jitter.
	Random func() float64
}

// Extensions is the registry of all extensions, and the client to call them. The manager creates one: the
// ExtensionConfig controller registers and discovers the extensions, and the other controllers call them through
// [Client]. It is safe for concurrent use.
type Extensions struct {
	catalog   *hooks.Catalog
	cfg       Config
	metrics   *metrics
	responses *responseCache
	// blocking holds the blockingPeriod of each handler that blocks an object.
	blocking *lru.Cache

	mu     sync.RWMutex
	primed bool
	byName map[string]*extension
	order  []*extension // by creation, then name
	subs   []func(extension string)
	// followers are the subscribers of OnHandlers.
	followers []func(extension string)
}

var _ Client = &Extensions{}

// New returns an empty registry. Calls fail with NotReady until [Extensions.Prime].
func New(cfg Config) (*Extensions, error) {
	if cfg.Catalog == nil {
		cfg.Catalog = hooks.Default()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	if cfg.Tracer == nil {
		cfg.Tracer = otel.Tracer("github.com/slipwayhq/slipway/internal/hook")
	}
	m, err := newMetrics(cfg.Registerer)
	if err != nil {
		return nil, err
	}
	return &Extensions{
		catalog: cfg.Catalog, cfg: cfg, metrics: m, responses: newResponseCache(cfg.Now), blocking: lru.New(maxCacheEntries),
		byName: map[string]*extension{},
	}, nil
}

// Catalog returns the supported hooks. The ExtensionConfig controller reports deprecated hooks by it.
func (e *Extensions) Catalog() *hooks.Catalog { return e.catalog }

// Prime marks that all existing extensions have been announced; calls are possible from then on. The ExtensionConfig
// controller calls it once when the manager starts, and `slipway plan` and `slipway extension call` after
// [Extensions.Restore]. It makes no network request: extensions that were never discovered block the operations that
// they may have handlers for.
func (e *Extensions) Prime() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.primed = true
}

// Announce registers an ExtensionConfig if it is not registered. Until its handlers are known, operations for which
// they may have to be called are blocked. The ExtensionConfig controller calls it for every ExtensionConfig before
// [Extensions.Prime], and in each reconciliation.
func (e *Extensions) Announce(c *runtimev1.ExtensionConfig) {
	e.mu.Lock()
	x := e.byName[c.Name]
	known := x != nil && x.settings.uid == c.UID
	if known && RefreshRequest(c) == "" {
		x.refresh = "" // the next request may have the same value
	}
	e.mu.Unlock()
	if !known {
		_, _ = e.announce(c) // the state of the extension has the error
	}
}

// Restore uses the handlers in the status of an ExtensionConfig, unless newer ones are known. It restores the handlers
// of a paused extension, and it is the only source of handlers for a manager that may not write. The error, if any, is
// the reason why the extension cannot be called. The ExtensionConfig controller, `slipway plan` and `slipway extension
// call` call it.
func (e *Extensions) Restore(c *runtimev1.ExtensionConfig) (problem error) {
	x, problem := e.announce(c)
	handlers, err := handlersOf(c)
	e.mu.Lock()
	switch {
	case x.discovered && x.attempt.generation >= c.Generation:
		e.mu.Unlock()
		return problem
	case err != nil:
		e.mu.Unlock()
		return errors.Join(problem, err)
	}
	isNew := x.notifiedGeneration != x.settings.generation
	x.notifiedGeneration = x.settings.generation
	found := meta.IsStatusConditionTrue(c.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	if len(handlers) > 0 || found { // an extension may have no handlers any more
		isNew = e.setHandlers(x, handlers) || isNew
	}
	e.mu.Unlock()
	if isNew {
		e.notifyHandlerSubscribers(x.name)
	}
	return problem
}

// announce registers an ExtensionConfig or updates its settings. If the new spec is invalid, the last valid settings
// remain in use.
func (e *Extensions) announce(c *runtimev1.ExtensionConfig) (*extension, error) {
	s, err := settingsOf(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.byName[c.Name]
	if x != nil && x.settings.uid != c.UID { // deleted and recreated
		e.remove(c.Name)
		x = nil
	}
	if x == nil {
		x = &extension{name: c.Name, announced: e.cfg.Now(), permits: make(chan struct{}, callsAtOnce), circuit: e.newCircuit(), settings: s}
		e.byName[c.Name] = x
		e.order = append(e.order, x)
		slices.SortFunc(e.order, byCreation)
	}
	if err == nil {
		err = e.connect(x, s.endpoint)
	}
	switch {
	case err == nil:
		x.settings, x.problem = s, nil
	case x.conn == nil:
		x.settings, x.problem = s, problemOf(err)
	}
	return x, err
}

// connect sets the endpoint for calls to an extension. The mutex must be held.
func (e *Extensions) connect(x *extension, endpoint Endpoint) error {
	if x.conn != nil && x.conn.Endpoint() == endpoint {
		return nil
	}
	conn, err := NewConn(endpoint, e.cfg.Certificates)
	if err != nil {
		return err
	}
	if x.conn != nil { // a different server, so the state of the circuits does not apply
		x.conn.Close()
		x.circuit = e.newCircuit()
		e.resetCircuits(x)
		e.metrics.circuit(x.name, false)
	}
	x.conn = conn
	return nil
}

// byCreation orders extensions by creation time, then name.
func byCreation(a, b *extension) int {
	if !a.settings.created.Equal(&b.settings.created) {
		return a.settings.created.Compare(b.settings.created.Time)
	}
	return strings.Compare(a.name, b.name)
}

// Forget removes an extension. Calls in flight are not interrupted. The ExtensionConfig controller calls it for a
// deleted ExtensionConfig, and `slipway extension call` at its end.
func (e *Extensions) Forget(name string) {
	e.mu.Lock()
	known := e.byName[name] != nil
	e.remove(name)
	e.mu.Unlock()
	if known {
		e.notifyHandlerSubscribers(name)
	}
}

func (e *Extensions) remove(name string) {
	x := e.byName[name]
	if x == nil {
		return
	}
	if x.conn != nil {
		x.conn.Close()
	}
	delete(e.byName, name)
	e.order = slices.DeleteFunc(e.order, func(other *extension) bool { return other == x })
	e.metrics.forgotten(name)
}

// State returns the state of an extension, or the zero value if it is not registered.
func (e *Extensions) State(name string) ExtensionState {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if x := e.byName[name]; x != nil {
		return x.state(e.catalog)
	}
	return ExtensionState{}
}

// OnChange registers f to be called with the name of an extension whenever one of its circuits opens or closes, or its
// next discovery is due earlier. The ExtensionConfig controller enqueues the ExtensionConfig then. f must not block.
func (e *Extensions) OnChange(f func(extension string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subs = append(e.subs, f)
}

// OnHandlers registers f to be called with the name of an extension whenever its handlers, its namespace selector or
// its server changed, when it recovers from failures, and when it is removed. The topology controller enqueues Clusters
// that wait for the extension. f must not block.
func (e *Extensions) OnHandlers(f func(extension string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.followers = append(e.followers, f)
}

// notifyHandlerSubscribers calls the subscribers of OnHandlers. The mutex must not be held.
func (e *Extensions) notifyHandlerSubscribers(extension string) {
	e.mu.RLock()
	followers := e.followers
	e.mu.RUnlock()
	for _, f := range followers {
		f(extension)
	}
}
