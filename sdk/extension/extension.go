package extension

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Extension is a set of handlers with their server. Create it with [New].
type Extension struct {
	catalog  *hooks.Catalog
	routes   map[string]route // by path
	order    []string         // the paths in the order of the handlers
	registry *prometheus.Registry
	metrics  metrics

	deprecated sync.Once // logged once
}

// route is a handler with its hook.
type route struct {
	handler Handler
	hook    hooks.Hook
	call    handlerFunc
}

// New returns an extension with handlers for the hooks of Cluster API. The error lists all names, timeouts and failure
// policies that violate the rules of discovery.
func New(handlers ...Handler) (*Extension, error) { return NewFor(hooks.Default(), handlers...) }

// NewFor is [New] for the hooks of a catalog, which may have several versions of a hook.
func NewFor(c *hooks.Catalog, handlers ...Handler) (*Extension, error) {
	x := &Extension{catalog: c, routes: map[string]route{}, registry: prometheus.NewRegistry()}
	x.metrics = newMetrics(x.registry)
	var problems []error
	names := map[string]bool{}
	for _, h := range handlers {
		if names[h.Name] {
			problems = append(problems, fmt.Errorf("handler %q: the name is taken", h.Name))
		}
		names[h.Name] = true
		r, err := resolve(c, h)
		if err != nil {
			problems = append(problems, fmt.Errorf("handler %q: %w", h.Name, err))
			continue
		}
		path := r.hook.Path(h.Name)
		x.routes[path] = r
		x.order = append(x.order, path)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	d, ok := c.Hook(hooks.Discovery)
	if !ok {
		return nil, errors.New("the catalog has no Discovery hook")
	}
	x.routes[d.Path("")] = route{hook: d, call: func(_ context.Context, body []byte) (reply, error) {
		if err := decode(body, d, d.NewRequest()); err != nil {
			return reply{}, err
		}
		return reply{response: x.discovered()}, nil
	}}
	return x, nil
}

// resolve finds the hook of a handler and validates the handler.
func resolve(c *hooks.Catalog, h Handler) (route, error) {
	if h.bind == nil {
		return route{}, errors.New("made without extension.On")
	}
	hook, ok := c.OfRequest(h.request)
	switch {
	case !ok:
		return route{}, fmt.Errorf("%T is the request of no hook in the catalog", h.request)
	case hook.Singleton:
		return route{}, fmt.Errorf("the hook %s is answered by this package", hook.ID.Hook)
	}
	return route{handler: h, hook: hook, call: h.bind(hook)}, h.check()
}

// check validates a handler by the rules of discovery.
func (h Handler) check() error {
	var problems []error
	if p := validation.IsDNS1123Label(h.Name); len(p) > 0 {
		problems = append(problems, fmt.Errorf("the name is not a DNS label: %s", strings.Join(p, "; ")))
	}
	if h.Timeout < 0 || h.Timeout > MaxTimeout || h.Timeout%time.Second != 0 {
		problems = append(problems, fmt.Errorf("the timeout %s is not a whole number of seconds up to %s", h.Timeout, MaxTimeout))
	}
	switch h.FailurePolicy {
	case "", hooksv1.FailurePolicyFail, hooksv1.FailurePolicyIgnore:
	default:
		problems = append(problems, fmt.Errorf("the failure policy %q is neither Fail nor Ignore", h.FailurePolicy))
	}
	return errors.Join(problems...)
}

// discovered returns the discovery response with all handlers.
func (x *Extension) discovered() *hooksv1.DiscoveryResponse {
	out := &hooksv1.DiscoveryResponse{}
	out.SetStatus(hooksv1.ResponseStatusSuccess)
	for _, path := range x.order {
		r := x.routes[path]
		seconds, policy := int32(r.handler.timeout()/time.Second), r.handler.FailurePolicy
		if policy == "" {
			policy = hooksv1.FailurePolicyFail
		}
		out.Handlers = append(out.Handlers, hooksv1.ExtensionHandler{
			Name:           r.handler.Name,
			RequestHook:    hooksv1.GroupVersionHook{APIVersion: r.hook.APIVersion(), Hook: r.hook.ID.Hook},
			TimeoutSeconds: &seconds, FailurePolicy: &policy,
		})
	}
	return out
}

// Catalog returns the catalog of hooks that the extension may serve.
func (x *Extension) Catalog() *hooks.Catalog { return x.catalog }

// Registry returns the registry with the metrics of the extension; handlers may add theirs.
func (x *Extension) Registry() *prometheus.Registry { return x.registry }

// Paths returns the paths of the handlers, in the order of the handlers.
func (x *Extension) Paths() []string { return append([]string{}, x.order...) }

// Path returns the path of the handler with a name; false if there is none.
func (x *Extension) Path(name string) (string, bool) {
	for _, path := range x.order {
		if x.routes[path].handler.Name == name {
			return path, true
		}
	}
	return "", false
}
