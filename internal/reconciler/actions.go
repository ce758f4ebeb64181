package reconciler

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/slipwayhq/slipway/internal/kube"
)

// independent is an action that does not depend on neighbouring actions of the same type in the plan. Consecutive
// Independent actions of one type run in parallel.
type independent interface {
	Action
	// Independent marks the type.
	Independent()
}

// compound is an action on several independent objects. Its parts run in parallel, and all of them run even if some
// fail. Logs, events and the outcome record the compound action as a whole.
type compound interface {
	Action
	// Parts returns one action for each object.
	Parts() []Action
}

// creating is an action that creates objects with generated names, which differ on every attempt. Its error is
// reported without the names, so that a persistent rejection produces one stable message.
type creating interface {
	Action
	Creates() (kind string, names []string)
}

// creationError is the error of a [creating] action, with a text that is the same on every attempt.
type creationError struct {
	error
	text string
}

// Unwrap returns the original error, which contains the generated names.
func (e *creationError) Unwrap() error { return e.error }

// failureOf wraps the error of an action with the action's description.
func failureOf(action Action, err error) error {
	err = fmt.Errorf("%s: %w", action, err)
	if a, ok := action.(creating); ok {
		kind, names := a.Creates()
		err = &creationError{error: err, text: fmt.Sprintf("creating objects of kind %s: %s", kind, strings.Join(kube.FailureMessages(err, names...), "; "))}
	}
	return err
}

// atOnce limits how many independent actions of a plan run in parallel.
const atOnce = 10

// runActions runs the actions of a plan. The first failure ends the reconciliation; independent actions that run in
// parallel with the failed one are still completed.
func (r *Reconciler[O, S]) runActions(ctx context.Context, s S, plan Plan) Outcome {
	var out Outcome
	for rest := plan.Actions; len(rest) > 0; {
		n := countParallel(rest)
		results := r.attempts(ctx, s, rest[:n])
		for i, action := range rest[:n] {
			if results[i].found != nil {
				out.Results = append(out.Results, results[i].found)
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

// actionResult is the result of one action.
type actionResult struct {
	found any
	err   error
}

// attempts runs actions in parallel. A single action runs on the current goroutine, because a new goroutine would
// first have to grow its stack.
func (r *Reconciler[O, S]) attempts(ctx context.Context, s S, actions []Action) []actionResult {
	if len(actions) == 1 {
		return []actionResult{r.attempt(ctx, s, actions[0])}
	}
	results := make([]actionResult, len(actions))
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

// attempt runs one action and converts a panic into an error.
func (r *Reconciler[O, S]) attempt(ctx context.Context, s S, action Action) (out actionResult) {
	if compound, ok := action.(compound); ok {
		if parts := compound.Parts(); len(parts) > 1 {
			return joinResults(r.attempts(ctx, s, parts))
		}
	}
	defer func() {
		if p := recover(); p != nil {
			out = actionResult{err: r.panicked(ctx, p)}
		}
	}()
	if f, ok := action.(ResultAction); ok {
		out.found, out.err = r.RunWithResult(ctx, s, f)
		return out
	}
	return actionResult{err: r.Act(ctx, s, action)}
}

// joinResults merges the results of all parts of a [compound] action.
func joinResults(parts []actionResult) actionResult {
	errs := make([]error, 0, len(parts))
	for _, part := range parts {
		errs = append(errs, part.err)
	}
	return actionResult{err: errors.Join(errs...)}
}

// countParallel returns how many actions at the beginning of the list run in parallel.
func countParallel(actions []Action) int {
	if _, ok := actions[0].(independent); !ok {
		return 1
	}
	n := 1
	for n < len(actions) && reflect.TypeOf(actions[n]) == reflect.TypeOf(actions[0]) {
		n++
	}
	return n
}
