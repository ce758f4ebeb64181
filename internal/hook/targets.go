package hook

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// targets returns the handlers of Runtime Extensions that serve a hook and apply to a namespace, in call order, for
// [Extensions.CallAll] and [Extensions.Handlers]. It returns an error if an extension applies to the namespace but its
// handlers are not known, because one of them may serve the hook.
func (e *Extensions) targets(ctx context.Context, hook hooks.Name, namespace string) ([]target, error) {
	candidates, err := e.candidates(hook)
	if err != nil {
		return nil, err
	}
	set := &namespaceLabels{read: e.cfg.NamespaceLabels, namespace: namespace}
	var out []target
	var missed error // the first error
	for _, c := range candidates {
		matches, err := set.match(ctx, c.settings.selector)
		switch {
		case err != nil:
			return nil, err
		case matches && c.unknown != nil:
			missed = cmp.Or(missed, c.unknown)
		case matches:
			out = append(out, c.target)
		}
	}
	return out, missed
}

// candidate is a handler, or an extension whose handlers are not known.
type candidate struct {
	target
	unknown error
}

// candidates returns the handlers of a hook, and the extensions that may have one.
func (e *Extensions) candidates(hook hooks.Name) ([]candidate, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.primed {
		return nil, fault.New(fault.Unreachable, ReasonNotReady, "the extensions have not been read yet")
	}
	var out []candidate
	for _, x := range e.order {
		if !x.discovered {
			out = append(out, candidate{x.at(Handler{}), x.undiscovered(e.cfg.Now())})
		}
		for _, h := range x.handlers {
			if h.Hook.Name == hook {
				out = append(out, candidate{target: x.at(h)})
			}
		}
	}
	return out, nil
}

// undiscovered returns an error with the reason why the handlers of an extension are not known. Its reason is NotReady
// if this is likely to be over soon.
func (x *extension) undiscovered(now time.Time) error {
	problem := x.problem
	if problem == nil {
		problem = x.attempt.problem
	}
	switch {
	case problem != nil:
		return fault.New(fault.Unreachable, reasonNotDiscovered,
			"ExtensionConfig %s may have handlers for this hook, but its discovery never succeeded: %s; correct or delete it", x.name, problem.Message)
	case now.Before(x.announced.Add(grace)):
		return fault.New(fault.Unreachable, ReasonNotReady, "waiting for the discovery of ExtensionConfig %s", x.name)
	}
	return fault.New(fault.Unreachable, reasonNotDiscovered,
		"ExtensionConfig %s may have handlers for this hook, but its discovery never succeeded; see its conditions, or delete it", x.name)
}

// find returns a handler by its full name, for [Extensions.Call].
func (e *Extensions) find(name string) (target, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if !e.primed {
		return target{}, fault.New(fault.Unreachable, ReasonNotReady, "the extensions have not been read yet")
	}
	handler, extension, _ := strings.Cut(name, ".")
	x := e.byName[extension]
	if x == nil {
		return target{}, fault.New(fault.Invalid, reasonNotRegistered, "handler %s: there is no ExtensionConfig %s", name, extension)
	}
	if !x.discovered {
		return target{}, x.undiscovered(e.cfg.Now())
	}
	for _, h := range x.handlers {
		if h.Name == handler {
			return x.at(h), nil
		}
	}
	return target{}, fault.New(fault.Invalid, reasonNotRegistered, "handler %s: the extension has no handler of this name", name)
}
