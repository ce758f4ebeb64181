package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Independent is an action that neither needs the one before it in the plan, if that is of the same type, nor is needed by
// the one after it: such neighbours are carried out several at a time.
type Independent interface {
	Action
	// Independent marks the type.
	Independent()
}

// Compound is an action on several objects that hold up none of the others: its parts are carried out several at a time, and all of
// them, whatever becomes of each. Logs, events and the outcome have the whole.
type Compound interface {
	Action
	// Parts are actions on one object each.
	Parts() []Action
}

// Creating is an action that creates objects, whose names are others at each attempt: why it failed is reported without them, so
// that a refusal that lasts is one message.
type Creating interface {
	Action
	// Creates returns the kind and the names of the new objects.
	Creates() (kind string, names []string)
}

// creationError is an error of a [Creating] action, with a text that does not change from one attempt to the next.
type creationError struct {
	error
	text string
}

// Unwrap returns the error with the names.
func (e *creationError) Unwrap() error { return e.error }

// failureOf is the error of an action.
func failureOf(action Action, err error) error {
	err = fmt.Errorf("%s: %w", action, err)
	if a, ok := action.(Creating); ok {
		kind, names := a.Creates()
		err = &creationError{error: err, text: fmt.Sprintf("creating objects of kind %s: %s", kind, strings.Join(kube.Refusals(err, names...), "; "))}
	}
	return err
}

// atOnce is how many independent actions of a plan are carried out at the same time.
const atOnce = 10

// carryOut carries out the actions of a plan. The first that fails ends the reconciliation; its independent neighbours are done.
func (r *Reconciler[O, S]) carryOut(ctx context.Context, s S, plan Plan) Outcome {
	var out Outcome
	for rest := plan.Actions; len(rest) > 0; {
		n := neighbours(rest)
		results := r.attempts(ctx, s, rest[:n])
		for i, action := range rest[:n] {
			if results[i].found != nil {
				out.Found = append(out.Found, results[i].found)
			}
			switch err := results[i].err; {
			case err == nil:
				out.Done = append(out.Done, action)
			case out.Err == nil:
				out.Failed, out.Err = action, failureOf(action, err)
			}
		}
		if out.Err != nil {
			return out
		}
		rest = rest[n:]
	}
	return out
}

// result is what became of one action.
type result struct {
	found any
	err   error
}

// attempts carries out actions together. One alone stays on the stack that is there: a new one would have to grow first.
func (r *Reconciler[O, S]) attempts(ctx context.Context, s S, actions []Action) []result {
	if len(actions) == 1 {
		return []result{r.attempt(ctx, s, actions[0])}
	}
	results := make([]result, len(actions))
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, action := range actions {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			results[i] = r.attempt(ctx, s, action)
		})
	}
	all.Wait()
	return results
}

// attempt carries out an action; a panic is an error of it.
func (r *Reconciler[O, S]) attempt(ctx context.Context, s S, action Action) (out result) {
	if compound, ok := action.(Compound); ok {
		if parts := compound.Parts(); len(parts) > 1 {
			return joined(r.attempts(ctx, s, parts))
		}
	}
	defer func() {
		if p := recover(); p != nil {
			out = result{err: r.panicked(ctx, p)}
		}
	}()
	if f, ok := action.(Finding); ok {
		out.found, out.err = r.Find(ctx, s, f)
		return out
	}
	return result{err: r.Act(ctx, s, action)}
}

// joined is what became of all parts of an action.
func joined(parts []result) result {
	errs := make([]error, 0, len(parts))
	for _, part := range parts {
		errs = append(errs, part.err)
	}
	return result{err: errors.Join(errs...)}
}

// neighbours returns how many actions at the beginning are carried out together.
func neighbours(actions []Action) int {
	if _, ok := actions[0].(Independent); !ok {
		return 1
	}
	n := 1
	for n < len(actions) && reflect.TypeOf(actions[n]) == reflect.TypeOf(actions[0]) {
		n++
	}
	return n
}
