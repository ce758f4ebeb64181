package ui

import (
	"context"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// PlanReader returns the last plans of an object, and false if the manager has none.
type PlanReader func(context.Context, rootcause.Ref) ([]Plan, bool, error)

// Plan is the last plan of one controller for an object.
type Plan struct {
	Controller string
	Time       time.Time
	Actions    []string
	Waits      []PlanWait
	Errors     []string
	// ErrorsSince is the time of the first of the failed reconciliations in a row, or zero.
	ErrorsSince time.Time
	// Recheck is the delay until the next reconciliation without an event.
	Recheck string
}

// PlanWait is a reason why a controller does nothing now.
type PlanWait struct {
	rootcause.Wait
	// Until describes what ends the wait.
	Until string
}

// Limits of the plans that a page reads.
const (
	planTimeout = 2 * time.Second
	maxPlanned  = 12
)

// readPlans returns the plans of an object. Without a manager, or if it does not respond, there are none, and the text
// describes why.
func (s *Source) readPlans(ctx context.Context, of rootcause.Ref) ([]Plan, string) {
	if s.Plans == nil {
		return nil, "No Slipway manager is known for this management cluster, so the cause is computed from conditions, owners and references alone."
	}
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	plans, found, err := s.Plans(ctx, of)
	switch {
	case err != nil:
		return nil, fault.UserMessage(err)
	case !found:
		return nil, "The manager has not reconciled this object since it started, or another manager does."
	}
	s.store.SetPlans(of, rootCausePlans(plans))
	return plans, ""
}

func rootCausePlans(plans []Plan) (out []rootcause.Plan) {
	for _, p := range plans {
		one := rootcause.Plan{Controller: p.Controller, Errors: p.Errors, ErrorsSince: p.ErrorsSince}
		for _, w := range p.Waits {
			one.Waits = append(one.Waits, w.Wait)
		}
		out = append(out, one)
	}
	return out
}

// explain returns the chain of an object. If a manager is reachable, the plans of the objects of the chain are read first,
// because they are more precise than conditions.
func (s *Source) explain(ctx context.Context, of rootcause.Ref, now time.Time) (rootcause.Chain, bool) {
	chain, found := rootcause.Explain(s.store, of, now)
	if s.Plans == nil || !found {
		return chain, found
	}
	for _, link := range chain.Links[:min(len(chain.Links), maxPlanned)] {
		if _, problem := s.readPlans(ctx, link.Object); problem != "" && ctx.Err() != nil {
			return chain, found
		}
	}
	return rootcause.Explain(s.store, of, now)
}
