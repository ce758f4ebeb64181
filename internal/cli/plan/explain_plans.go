package plan

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// planReader reads plans from a manager, and remembers why there is none. `slipway explain` has one reader. A plan
// lists the actions and waits of a controller's last reconciliation of an object. Package rootcause reads the plans of
// further objects through source.
type planReader struct {
	client *managerClient
	// absent is the reason why there is no manager.
	absent error
	// isRequired is true if the user selected the manager.
	isRequired bool
	known      map[rootcause.Ref]manager.ObjectPlans
	// unplanned has the reasons why objects have no plan.
	unplanned map[rootcause.Ref]error
}

// newPlanReader returns the reader for the manager that the flags select. Only for a manager that the user selected, it
// is an error if it cannot be reached. newExplainer calls it.
func (f *managerFlags) newPlanReader(ctx context.Context, e term.Env, c *management.Connection) (*planReader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &planReader{isRequired: f.URL != "" || f.CA != "" || f.Insecure, known: map[rootcause.Ref]manager.ObjectPlans{}, unplanned: map[rootcause.Ref]error{}}
	client, err := f.newClient(e, c)
	if err != nil && r.isRequired {
		return nil, err
	}
	r.client, r.absent = client, err
	return r, nil
}

// read returns the plans of an object; they are empty if there is no manager, or it has no plan. [explainer.explain]
// calls it for the object of the argument, and source for further objects.
func (r *planReader) read(ctx context.Context, of rootcause.Ref) (manager.ObjectPlans, error) {
	if last, known := r.known[of]; known || r.absent != nil {
		return last, nil
	}
	last, err := r.client.readPlans(ctx, objectReference{of.GroupKind(), client.ObjectKey{Namespace: of.Namespace, Name: of.Name}})
	switch known := fault.As(err); {
	case err == nil:
	case known != nil && (known.Kind == fault.Gone || known.Reason == reasonNotAllowed): // of this object alone
		r.unplanned[of], err = err, nil
	case errors.Is(err, context.Canceled) || r.isRequired:
		return last, err
	default:
		r.absent, err = err, nil
	}
	r.known[of] = last
	return last, err
}

// causePlans converts plans for package rootcause. The waits have the same order, on which pagePlan relies (ui.go).
func causePlans(last manager.ObjectPlans) (out []rootcause.Plan) {
	for _, r := range last.Plans {
		plan := rootcause.Plan{Controller: r.Controller, Errors: r.Errors, ErrorsSince: r.ErrorsSince}
		for _, w := range r.Waits {
			wait := rootcause.Wait{Reason: w.Reason, Message: w.Message, Since: w.Since, User: w.Until == reconciler.UntilUser, Timed: w.Until == reconciler.UntilTime}
			for _, on := range w.On {
				wait.On = append(wait.On, rootcause.Ref{Kind: on.Kind, Namespace: on.Namespace, Name: on.Name})
			}
			plan.Waits = append(plan.Waits, wait)
		}
		out = append(out, plan)
	}
	return out
}

// source returns the plans for package rootcause; nil without a manager.
func (r *planReader) source() rootcause.PlanSource {
	if r.absent != nil {
		return nil
	}
	return func(ctx context.Context, of rootcause.Ref) ([]rootcause.Plan, error) {
		last, err := r.read(ctx, of)
		switch {
		case err == nil && r.absent != nil:
			return nil, r.absent
		case r.unplanned[of] != nil:
			return nil, rootcause.ErrNoPlans
		}
		return causePlans(last), err
	}
}

// missing returns why plans are not part of the explanation of an object; empty if they are.
func (r *planReader) missing(g *rootcause.Reader, of rootcause.Ref) string {
	for _, err := range []error{r.absent, g.PlansErr(), r.unplanned[of]} {
		if err != nil {
			return fault.UserMessage(err)
		}
	}
	return ""
}
