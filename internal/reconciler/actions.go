package reconciler

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
)

// independent is an action that does not depend on neighbouring actions of the same type in the plan. Actions of
// controllers implement it to run in parallel with consecutive actions of their type.
type independent interface {
	Action
	// Independent marks the type.
	Independent()
}

// compound is an action on several independent objects. Its parts run in parallel, and all of them run even if some
// fail. Logs, events and the outcome record the compound action as a whole. Packages machines, machineset and topology
// implement it. The method alone marks the type, and an action with one part is passed to Act as it is.
type compound interface {
	Action
	Parts() []Action
}

// creating is an action that creates objects with generated names, which the report of its error omits.
type creating interface {
	Action
	Creates() (kind string, names []string)
}

// failureOf wraps the error of an action with the action's description.
func failureOf(action Action, err error) error {
	err = fmt.Errorf("%s: %w", action, err)
	if a, ok := action.(creating); ok {
		kind, names := a.Creates()
		err = reporting.CreationError(err, kind, names)
	}
	return err
}

// atOnce limits how many independent actions of a plan run in parallel.
const atOnce = 10

// runActions runs the actions of a plan. Each reconciliation calls it after Decide. The first failure ends the
// reconciliation; independent actions that run in parallel with the failed one are still completed.
func (r *Reconciler[O, S]) runActions(ctx context.Context, s S, plan Plan) Outcome {
	var out Outcome
	for rest := plan.Actions; len(rest) > 0; {
		n := countParallel(rest)
		errs := r.attempts(ctx, s, rest[:n])
		for i, action := range rest[:n] {
			switch err := errs[i]; {
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

// attempts runs actions in parallel and returns their errors. A single action runs on the current goroutine, because a
// new goroutine would first have to grow its stack.
func (r *Reconciler[O, S]) attempts(ctx context.Context, s S, actions []Action) []error {
	if len(actions) == 1 {
		return []error{r.attempt(ctx, s, actions[0])}
	}
	errs := make([]error, len(actions))
	var all fault.Group
	all.SetLimit(atOnce)
	for i, action := range actions {
		all.Go(func() error {
			errs[i] = r.attempt(ctx, s, action)
			return nil
		})
	}
	_ = all.Wait() // the errors are in errs
	return errs
}

// attempt runs one action and converts a panic into an error.
func (r *Reconciler[O, S]) attempt(ctx context.Context, s S, action Action) (err error) {
	if compound, ok := action.(compound); ok {
		if parts := compound.Parts(); len(parts) > 1 {
			return errors.Join(r.attempts(ctx, s, parts)...)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = r.panicked(ctx, p)
		}
	}()
	return r.Act(ctx, s, action)
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

// UnknownAction returns the error of a controller whose act function does not implement an action of its decisions.
func UnknownAction(controller string, action any) error {
	return fault.New(fault.Bug, "UnknownAction", "the %s controller does not implement the action %q", controller, fmt.Sprint(action))
}

// UnknownRead returns the error of a controller that does not implement a read that its decisions request. The Read
// functions of the controllers return it.
func UnknownRead(controller string, read any) error {
	return fault.New(fault.Bug, "UnknownQuestion", "the %s controller does not implement the read %q", controller, fmt.Sprint(read))
}
