package hook

import (
	"context"
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
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook/breaker"
	"github.com/slipwayhq/slipway/internal/hook/wire"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Config is what calls need. The zero value of a field is its default.
type Config struct {
	// Catalog of the hooks; nil: those of Cluster API.
	Catalog *hooks.Catalog
	// NamespaceLabels reads the labels of a namespace, for namespaceSelectors (RT-03). Required.
	NamespaceLabels func(ctx context.Context, namespace string) (labels.Set, error)
	// Certificates is the client certificate to show (RT-17); nil: none.
	Certificates *wire.Certificates
	// Registerer of the metrics; nil: they are not exported.
	Registerer prometheus.Registerer
	// Tracer of the spans, one a call; nil: that of the global provider.
	Tracer trace.Tracer
	// Now is the clock.
	Now func() time.Time
	// Random returns a number of [0,1), for jitter.
	Random func() float64
}

// Extensions is all that is known of the extensions, and the way to call them. It is safe for concurrent use.
type Extensions struct {
	catalog *hooks.Catalog
	cfg     Config
	metrics *metrics
	answers *answers

	mu     sync.RWMutex
	primed bool
	byName map[string]*extension
	order  []*extension // by creation, then name (RT-12)
	subs   []func(extension string)
}

var _ Client = &Extensions{}

// New returns a registry that knows no extension. Calls fail with NotReady until [Extensions.Prime].
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
		catalog: cfg.Catalog, cfg: cfg, metrics: m, answers: newAnswers(cfg.Now), byName: map[string]*extension{},
	}, nil
}

// Catalog returns the hooks that can be called.
func (e *Extensions) Catalog() *hooks.Catalog { return e.catalog }

// Prime takes over what the API server remembers of all extensions; from then on calls are possible (RT-19). Nothing is
// asked over the network: those never discovered are waited for by whom they concern, for a short time.
func (e *Extensions) Prime(configs []runtimev1.ExtensionConfig) {
	for i := range configs {
		e.Restore(&configs[i])
	}
	e.mu.Lock()
	e.primed = true
	e.mu.Unlock()
}

// Restore takes over the handlers that the status of an ExtensionConfig lists, unless newer ones are known. It is how a
// paused extension stays known (RT-21), and the only source of a manager that may not write (RT-20). The problem, if any,
// says why the extension cannot be called.
func (e *Extensions) Restore(c *runtimev1.ExtensionConfig) (problem error) {
	x, problem := e.announce(c)
	if problem != nil {
		return problem
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.discovered && x.attempt.generation >= c.Generation {
		return nil
	}
	handlers, err := e.handlersOf(c)
	if err != nil {
		return err
	}
	found := meta.IsStatusConditionTrue(c.Status.Conditions, runtimev1.ExtensionConfigDiscoveredCondition)
	if len(handlers) > 0 || found { // an extension may have no handler any more
		e.found(x, handlers)
	}
	return nil
}

// announce makes the spec of an ExtensionConfig the one that calls go by.
func (e *Extensions) announce(c *runtimev1.ExtensionConfig) (*extension, error) {
	s, err := settingsOf(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.byName[c.Name]
	if x != nil && x.settings.uid != c.UID { // deleted and made again
		e.remove(c.Name)
		x = nil
	}
	if x == nil {
		x = &extension{
			name: c.Name, announced: e.cfg.Now(), slots: make(chan struct{}, inFlight),
			breaker: breaker.New(breaker.Config{Random: e.cfg.Random}),
		}
		e.byName[c.Name] = x
		x.settings = s
		e.order = append(e.order, x)
		slices.SortFunc(e.order, byCreation)
	}
	x.settings = s
	if err != nil {
		return x, err
	}
	if x.conn == nil || x.conn.Endpoint() != s.endpoint {
		if x.conn != nil {
			x.conn.Close()
			x.breaker = breaker.New(breaker.Config{Random: e.cfg.Random}) // another server: nothing is known of it
			e.metrics.circuit(x.name, false)
		}
		x.conn, err = wire.New(s.endpoint, wire.Options{Certificates: e.cfg.Certificates, Keep: 2 * inFlight})
	}
	return x, err
}

// byCreation orders extensions as they were registered (RT-12).
func byCreation(a, b *extension) int {
	if !a.settings.created.Equal(&b.settings.created) {
		return a.settings.created.Compare(b.settings.created.Time)
	}
	return strings.Compare(a.name, b.name)
}

// Forget removes an extension (RT-21). Calls to it that are under way end as they do.
func (e *Extensions) Forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remove(name)
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

// State returns what is known of an extension; the zero State if nothing is.
func (e *Extensions) State(name string) State {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if x := e.byName[name]; x != nil {
		return x.state()
	}
	return State{}
}

// OnChange calls f with the name of an extension whenever its circuit opens or closes. F must not block.
func (e *Extensions) OnChange(f func(extension string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subs = append(e.subs, f)
}

// targets lists the handlers of a hook that are for objects in a namespace, in the order to call them.
func (e *Extensions) targets(ctx context.Context, hook hooks.Name, namespace string) ([]target, error) {
	candidates, pending, err := e.candidates(hook)
	if err != nil {
		return nil, err
	}
	set := &namespaceLabels{read: e.cfg.NamespaceLabels, namespace: namespace}
	var out []target
	for _, t := range candidates {
		matches, err := set.match(ctx, t.settings.selector)
		if err != nil {
			return nil, err
		}
		if matches {
			out = append(out, t)
		}
	}
	for _, t := range pending {
		matches, err := set.match(ctx, t.settings.selector)
		if err != nil {
			return nil, err
		}
		if matches {
			return nil, fault.New(fault.Unreachable, ReasonNotReady, "extension %s has not been asked for its handlers yet", t.name)
		}
	}
	return out, nil
}

// candidates lists the handlers of a hook, and the extensions whose handlers are about to be known.
func (e *Extensions) candidates(hook hooks.Name) (known, pending []target, err error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.primed {
		return nil, nil, fault.New(fault.Unreachable, ReasonNotReady, "the extensions are not known yet")
	}
	now := e.cfg.Now()
	for _, x := range e.order {
		if x.conn == nil {
			continue
		}
		if !x.discovered && x.attempt.generation == 0 && now.Before(x.announced.Add(grace)) {
			pending = append(pending, x.at(Handler{}))
		}
		for _, h := range x.handlers {
			if h.Hook.Name == hook {
				known = append(known, x.at(h))
			}
		}
	}
	return known, pending, nil
}

// find returns a handler by its name (RT-08).
func (e *Extensions) find(name string) (target, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.primed {
		return target{}, fault.New(fault.Unreachable, ReasonNotReady, "the extensions are not known yet")
	}
	handler, extension, _ := strings.Cut(name, ".")
	x := e.byName[extension]
	if x == nil || x.conn == nil {
		return target{}, fault.New(fault.Invalid, ReasonNotRegistered, "handler %s: there is no ExtensionConfig %s that can be called", name, extension)
	}
	for _, h := range x.handlers {
		if h.Name == handler {
			return x.at(h), nil
		}
	}
	if !x.discovered {
		return target{}, fault.New(fault.Unreachable, ReasonNotReady, "handler %s: the extension was not discovered yet", name)
	}
	return target{}, fault.New(fault.Invalid, ReasonNotRegistered, "handler %s: the extension has no handler of this name", name)
}
