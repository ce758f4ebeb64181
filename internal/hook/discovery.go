package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Discover calls the discovery hook of a Runtime Extension and returns the resulting state. The ExtensionConfig
// controller calls it when the spec changes, when the previous result is too old, or on request. If the response cannot
// be used, the handlers of the last successful discovery remain and the delay until the next attempt grows with every
// failure. The only error returned is the context's.
func (e *Extensions) Discover(ctx context.Context, c *runtimev1.ExtensionConfig) (ExtensionState, error) {
	x, err := e.announce(c)
	var handlers []Handler
	if err == nil {
		handlers, err = e.callDiscovery(ctx, x)
	}
	if ctx.Err() != nil {
		return ExtensionState{}, ctx.Err()
	}
	e.mu.Lock()
	closed, isNew := false, x.notifiedGeneration != x.settings.generation
	x.notifiedGeneration = x.settings.generation
	x.refreshed(RefreshRequest(c))
	if err != nil {
		x.attempt.generation, x.attempt.at, x.attempt.problem = c.Generation, e.cfg.Now(), problemOf(err)
		x.attempt.failed++
		x.attempt.next = e.cfg.Now().Add(e.jitter(backoff(x.attempt.failed)))
	} else {
		last := x.attempt
		x.attempt = discoveryAttempt{generation: c.Generation, at: e.cfg.Now(), next: e.cfg.Now().Add(e.jitter(discoveryInterval))}
		if last.scheduledEarly {
			x.attempt.early = last.early + 1
		}
		isNew = e.setHandlers(x, handlers) || isNew
		closed = x.circuit.Reset()
	}
	e.mu.Unlock()
	if closed {
		e.changed(x)
	}
	if closed || isNew {
		e.notifyHandlerSubscribers(x.name)
	}
	return e.State(c.Name), nil
}

func problemOf(err error) *fault.Fault {
	if f := fault.As(err); f != nil {
		return f
	}
	return fault.New(fault.Transient, reasonInvalidDiscovery, "%v", err)
}

// callDiscovery calls the discovery hook. It needs no permit, so an extension with slow calls can still be discovered.
func (e *Extensions) callDiscovery(ctx context.Context, x *extension) ([]Handler, error) {
	h, ok := e.catalog.Newest(hooks.Discovery.Name)
	if !ok {
		return nil, fault.New(fault.Bug, reasonInvalidDiscovery, "the catalog has no discovery hook")
	}
	e.mu.RLock()
	conn := x.conn
	e.mu.RUnlock()
	body, err := json.Marshal(h.Request())
	if err != nil {
		return nil, fault.New(fault.Bug, reasonInvalidDiscovery, "the discovery request cannot be encoded").From(err)
	}
	got, err := e.post(ctx, conn, h, WireRequest{Path: h.Path(""), Body: body, Timeout: discoveryTimeout})
	if err != nil {
		return nil, err
	}
	discovered, ok := got.response.(*hooksv1.DiscoveryResponse)
	if !ok {
		return nil, fault.New(fault.Bug, reasonInvalidDiscovery, "unexpected discovery response %T", got.response)
	}
	return handlersIn(discovered, e.catalog)
}

// handlersIn validates a list of handlers by the rules of Cluster API. One invalid handler makes the whole list
// invalid; the message lists the problems in the order of the handler names.
func handlersIn(d *hooksv1.DiscoveryResponse, catalog *hooks.Catalog) ([]Handler, error) {
	if n := len(d.Handlers); n > maxHandlers {
		return nil, fault.New(fault.Invalid, reasonInvalidDiscovery, "the extension has %d handlers; at most %d can be registered", n, maxHandlers)
	}
	var out []Handler
	var problems []string
	seen := map[string]bool{}
	for _, listed := range inOrder(d.Handlers) {
		h, wrong := handlerOf(listed, catalog)
		if seen[listed.Name] {
			wrong = append(wrong, "the name is not unique")
		}
		seen[listed.Name] = true
		for _, w := range wrong {
			problems = append(problems, fmt.Sprintf("handler %q: %s", clip(listed.Name), w))
		}
		out = append(out, h)
	}
	if len(problems) > 0 {
		const shown = 5
		if n := len(problems); n > shown {
			problems = append(problems[:shown], fmt.Sprintf("%d more", n-shown))
		}
		return nil, fault.New(fault.Invalid, reasonInvalidDiscovery, "%s", strings.Join(problems, "; "))
	}
	return out, nil
}

// inOrder sorts a list of handlers, so that the error message does not depend on the order in which the extension lists
// them.
func inOrder(listed []hooksv1.ExtensionHandler) []hooksv1.ExtensionHandler {
	return slices.SortedStableFunc(slices.Values(listed), func(a, b hooksv1.ExtensionHandler) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.RequestHook.Hook, b.RequestHook.Hook),
			cmp.Compare(a.RequestHook.APIVersion, b.RequestHook.APIVersion))
	})
}

// handlerOf converts one handler from a discovery response, and returns its problems.
func handlerOf(listed hooksv1.ExtensionHandler, catalog *hooks.Catalog) (h Handler, wrong []string) {
	h = Handler{Name: listed.Name, Timeout: defaultTimeout, Policy: runtimev1.FailurePolicyFail}
	for _, text := range validation.IsDNS1123Label(listed.Name) {
		wrong = append(wrong, "the name is not a DNS label: "+text)
	}
	id, err := hooks.ParseID(listed.RequestHook.APIVersion, listed.RequestHook.Hook)
	if err != nil {
		wrong = append(wrong, clipTo(err.Error(), 2*maxWord))
	} else if _, known := catalog.Hook(id); !known {
		wrong = append(wrong, "there is no hook "+clip(id.Hook)+" in "+clip(id.APIVersion())+similar(id, catalog))
	}
	h.Hook = id
	if t := listed.TimeoutSeconds; t != nil {
		switch limit := int32(maxTimeout / time.Second); {
		case *t < 0 || *t > limit:
			wrong = append(wrong, fmt.Sprintf("timeoutSeconds is %d; want 0 to %d", *t, limit))
		case *t > 0:
			h.Timeout = time.Duration(*t) * time.Second
		}
	}
	if p := listed.FailurePolicy; p != nil && *p != "" {
		h.Policy = runtimev1.FailurePolicy(*p)
	}
	if h.Policy != runtimev1.FailurePolicyFail && h.Policy != runtimev1.FailurePolicyIgnore {
		wrong = append(wrong, fmt.Sprintf("failurePolicy is %q; want Fail or Ignore", clip(string(h.Policy))))
	}
	return h, wrong
}

// similar suggests an existing hook for one that does not exist. The suggestion differs in the case of letters, the
// group, or the version.
func similar(id hooks.ID, catalog *hooks.Catalog) string {
	for _, h := range slices.Backward(catalog.All()) {
		if strings.EqualFold(h.ID.Hook, id.Hook) {
			return "; there is " + h.ID.Hook + " in " + h.ID.APIVersion()
		}
	}
	return ""
}

// handlersOf reads the handlers from the status of an ExtensionConfig, including handlers of unknown hooks (a newer or
// older version of Slipway may have written the status). These block the operations that they would be called for.
// [Extensions.Restore] calls it.
func handlersOf(c *runtimev1.ExtensionConfig) ([]Handler, error) {
	var out []Handler
	var problems []error
	for _, listed := range c.Status.Handlers {
		name, ok := strings.CutSuffix(listed.Name, "."+c.Name)
		id, err := hooks.ParseID(listed.RequestHook.APIVersion, listed.RequestHook.Hook)
		if !ok || err != nil {
			problems = append(problems, fault.New(fault.Invalid, reasonInvalidDiscovery, "status.handlers: %q is not a handler of the extension", clip(listed.Name)))
			continue
		}
		h := Handler{Name: name, Hook: id, Timeout: time.Duration(listed.TimeoutSeconds) * time.Second,
			Policy: listed.FailurePolicy}
		if h.Timeout <= 0 {
			h.Timeout = defaultTimeout
		}
		h.Timeout = min(h.Timeout, maxTimeout)
		if h.Policy == "" {
			h.Policy = runtimev1.FailurePolicyFail
		}
		out = append(out, h)
	}
	return out, errors.Join(problems...)
}

// StatusHandlers converts handlers for the status of their ExtensionConfig, where [Extensions.Restore] reads them
// again.
func StatusHandlers(extension string, handlers []Handler) []runtimev1.ExtensionHandler {
	out := make([]runtimev1.ExtensionHandler, 0, len(handlers))
	for _, h := range handlers {
		out = append(out, runtimev1.ExtensionHandler{
			Name:           handlerName(h.Name, extension),
			RequestHook:    runtimev1.GroupVersionHook{APIVersion: h.Hook.APIVersion(), Hook: h.Hook.Hook},
			TimeoutSeconds: int32(h.Timeout / time.Second), FailurePolicy: h.Policy,
		})
	}
	return out
}

// deprecated returns the deprecated hooks that handlers serve, sorted and without duplicates.
func (e *Extensions) deprecated(handlers []Handler) []hooks.ID {
	var out []hooks.ID
	for _, h := range handlers {
		if known, ok := e.catalog.Hook(h.Hook); ok && known.Deprecation != nil && !slices.Contains(out, h.Hook) {
			out = append(out, h.Hook)
		}
	}
	slices.SortFunc(out, func(a, b hooks.ID) int { return strings.Compare(a.String(), b.String()) })
	return out
}
