package hook

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook/breaker"
	"github.com/slipwayhq/slipway/internal/hook/wire"
)

// permit asks the circuits of the handler and of its extension whether it may be called now.
func (e *Extensions) permit(t target) (permits [2]breaker.Permit, err error) {
	for i, circuit := range t.circuits {
		var ok bool
		if permits[i], ok = circuit.Enter(e.cfg.Now()); ok {
			continue
		}
		if i > 0 {
			permits[0].Abandoned()
		}
		state := circuit.State() // the message is that of the failure: what people read does not change when a circuit opens
		cause := t.described(&fault.Fault{Reason: state.Cause.Reason, Message: state.Cause.Message})
		return permits, fault.New(fault.Unreachable, ReasonCircuitOpen, "%s", cause).RetryIn(state.RetryAt.Sub(e.cfg.Now()))
	}
	return permits, nil
}

// settle tells the circuits what became of a call: that of the extension whether it was reached, that of the handler whether
// there was an answer.
func (e *Extensions) settle(t target, permits [2]breaker.Permit, err error) {
	handler, extension := permits[0], permits[1]
	f := failureOf(err)
	changed := false
	switch {
	case errors.Is(err, context.Canceled):
		handler.Abandoned()
		extension.Abandoned()
	case f != nil && wire.Unconnected(f.Reason):
		handler.Abandoned()
		changed = extension.Failed(e.cfg.Now(), breaker.Failure{Reason: f.Reason, Message: f.Message})
	case f != nil:
		reached := extension.Succeeded()
		changed = handler.Failed(e.cfg.Now(), breaker.Failure{Reason: f.Reason, Message: f.Message}) || reached
	default:
		reached := extension.Succeeded()
		changed = handler.Succeeded() || reached
	}
	if notServed(f) {
		changed = e.discoverEarly(t.extension) || changed
	}
	if changed {
		e.changed(t.extension)
	}
}

// discoverEarly brings the next discovery forward, because a handler that the last one named is not served: the handlers
// changed. It is due at once the first time, then with growing pauses after the one before: an extension may never serve
// what it names. It reports whether that is a change.
func (e *Extensions) discoverEarly(x *extension) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	due := e.cfg.Now()
	if n := x.attempt.early; n > 0 {
		due = x.attempt.at.Add(e.pause(n))
	}
	if x.attempt.problem != nil || !due.Before(x.attempt.next) {
		return false // it is due soon enough
	}
	x.attempt.next, x.attempt.hurried = due, true
	return true
}

// found makes handlers those of an extension, in the order in which they are called. The circuits of those that stay stay.
// It reports whether they are others than before. The mutex must be held.
func (e *Extensions) found(x *extension, handlers []Handler) (isNew bool) {
	slices.SortFunc(handlers, compareHandlers)
	isNew = !x.discovered || !reflect.DeepEqual(x.handlers, handlers)
	x.handlers, x.discovered = handlers, true
	known := x.circuits
	e.resetCircuits(x)
	for path := range x.circuits {
		if circuit := known[path]; circuit != nil {
			x.circuits[path] = circuit
		}
	}
	if e.known(x) {
		e.metrics.registered(x.name, e.deprecated(handlers))
		e.metrics.circuit(x.name, x.open())
	}
	return isNew
}

// resetCircuits gives every handler a closed circuit. The mutex must be held.
func (e *Extensions) resetCircuits(x *extension) {
	x.circuits = map[string]*breaker.Breaker{}
	for _, h := range x.handlers {
		x.circuits[h.path()] = e.newCircuit()
	}
}

func (e *Extensions) newCircuit() *breaker.Breaker {
	return breaker.New(breaker.Config{Random: e.cfg.Random})
}

// changed tells that a circuit of an extension opened or closed, or that its next discovery is due earlier, unless no one
// cares any more.
func (e *Extensions) changed(x *extension) {
	e.mu.Lock()
	var subs []func(string)
	if e.known(x) {
		subs = e.subs
		e.metrics.circuit(x.name, x.open())
	}
	e.mu.Unlock()
	for _, f := range subs {
		f(x.name)
	}
}
