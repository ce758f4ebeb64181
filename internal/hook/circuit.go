package hook

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

// permit requests a permit from the circuit breakers of the handler and its extension, before each call of a Runtime
// Extension.
func (e *Extensions) permit(t target) (permits [2]breakerPermit, err error) {
	for i, circuit := range t.circuits {
		var ok bool
		if permits[i], ok = circuit.Acquire(e.cfg.Now()); ok {
			continue
		}
		if i > 0 {
			permits[0].Abandoned()
		}
		state := circuit.State() // the same message as the failure, so it does not change when a circuit opens
		cause := t.failureMessage(&fault.Fault{Reason: state.Cause.Reason, Message: state.Cause.Message})
		return permits, fault.New(fault.Unreachable, ReasonCircuitOpen, "%s", cause).RetryIn(state.RetryAt.Sub(e.cfg.Now()))
	}
	return permits, nil
}

// reportOutcome reports the outcome of a call to both circuit breakers: to the extension's whether the extension was
// reached, to the handler's whether it returned a usable response.
func (e *Extensions) reportOutcome(t target, permits [2]breakerPermit, err error) {
	handler, extension := permits[0], permits[1]
	f := failureOf(err)
	var failure BreakerFailure
	if f != nil {
		failure = BreakerFailure{Reason: f.Reason, Message: f.Message}
	}
	changed := false
	switch {
	case errors.Is(err, context.Canceled):
		handler.Abandoned()
		extension.Abandoned()
	case f != nil && unconnected(f.Reason):
		handler.Abandoned()
		changed = extension.Failed(e.cfg.Now(), failure)
	case f != nil:
		reached := extension.Succeeded()
		changed = handler.Failed(e.cfg.Now(), failure) || reached
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

// discoverEarly schedules the next discovery earlier, because a handler from the last discovery is not served and the
// handlers have therefore probably changed. It is due immediately the first time and with exponential backoff after
// that, because an extension may never serve a handler that it lists. It reports whether the schedule changed.
func (e *Extensions) discoverEarly(x *extension) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	due := e.cfg.Now()
	if n := x.attempt.early; n > 0 {
		due = x.attempt.at.Add(e.jitter(backoff(n)))
	}
	if x.attempt.problem != nil || !due.Before(x.attempt.next) {
		return false // the next discovery is already due earlier, or retries after a failure
	}
	x.attempt.next, x.attempt.scheduledEarly = due, true
	return true
}

// setHandlers stores the discovered handlers of an extension, sorted in call order. Handlers that were known before
// retain their circuit breakers. It reports whether the handlers changed. The mutex must be held.
func (e *Extensions) setHandlers(x *extension, handlers []Handler) (isNew bool) {
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

// resetCircuits creates a closed circuit breaker for every handler. The mutex must be held.
func (e *Extensions) resetCircuits(x *extension) {
	x.circuits = map[string]*breaker{}
	for _, h := range x.handlers {
		x.circuits[h.path()] = e.newCircuit()
	}
}

func (e *Extensions) newCircuit() *breaker { return &breaker{jitter: e.jitter} }

// jitter varies a delay at random by up to a fifth, so that extensions created together are not always discovered
// together, and that many managers do not retry at the same moment.
func (e *Extensions) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*e.cfg.Random()))
}

// changed notifies the OnChange subscribers that a circuit of the extension opened or closed, or that its next
// discovery is due earlier, unless the extension was removed in the meantime.
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
