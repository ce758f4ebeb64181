package ui

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/pause"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// PlanReader returns the last plans of an object, and false if the manager has none. `slipway ui` provides it for a
// management cluster with a known manager.
type PlanReader func(context.Context, rootcause.Ref) ([]Plan, bool, error)

// Plan is the last plan of one controller for an object. `slipway ui` converts the diagnostics of the manager to it.
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
	// maxPlanned is the number of objects of a chain, and maxPlannedRows the number of clusters, whose plans are read.
	maxPlanned     = 12
	maxPlannedRows = 30
	// planInterval is the interval in which the plans of clusters with a problem are read, because the manager does not
	// report a change of a plan, and planLife the time after which a plan is stale.
	planInterval = 10 * time.Second
	planLife     = 25 * time.Second
)

// planTimes records when plans were read.
type planTimes struct {
	mu   sync.Mutex
	read map[rootcause.Ref]time.Time
}

func (p *planTimes) set(of rootcause.Ref, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		p.read = map[rootcause.Ref]time.Time{}
	}
	p.read[of] = at
}

// takeStale returns the objects whose plans are stale, and forgets them.
func (p *planTimes) takeStale(now time.Time) (out []rootcause.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for of, at := range p.read {
		if now.Sub(at) >= planLife {
			out = append(out, of)
			delete(p.read, of)
		}
	}
	return out
}

// watchPlans updates what the manager reports until the context ends. [Source.Run] starts it if a manager is known.
func (s *Source) watchPlans(ctx context.Context) {
	for pause.Sleep(ctx, planInterval) == nil {
		s.updatePlans(ctx)
	}
}

// updatePlans reads the plans of the clusters that are not healthy, because their causes are more precise than conditions.
// It publishes the extensions, because no object changes with their calls, latencies and circuits.
func (s *Source) updatePlans(ctx context.Context) {
	s.dropStalePlans()
	s.readPlansOfProblems(ctx)
	s.hub.publish(s.topic("extensions"))
}

// dropStalePlans removes plans that have not been read again, so that they do not hide that a problem has ended.
func (s *Source) dropStalePlans() {
	for _, of := range s.planned.takeStale(s.Now()) {
		s.store.SetPlans(of, nil)
		if u, ok := s.store.Get(of); ok {
			s.note(mirror.Change{Of: of, Object: u})
		}
	}
}

// readPlansOfProblems reads the plans of the objects in the chains of clusters with a problem.
func (s *Source) readPlansOfProblems(ctx context.Context) {
	rows := slices.Clone(s.board.Clusters())
	slices.SortFunc(rows, fleet.CompareClustersByTrouble)
	for _, row := range rows[:min(len(rows), maxPlannedRows)] {
		links := row.Chain().Links
		for _, link := range links[:min(len(links), maxPlanned)] {
			if _, problem := s.readPlans(ctx, link.Object); problem != "" && problem != noPlans {
				return
			}
		}
		if u, ok := s.store.Get(row.Ref()); ok && len(links) > 0 {
			s.note(mirror.Change{Of: row.Ref(), Object: u})
		}
	}
}

// noPlans is shown for an object without a plan.
const noPlans = "The manager has not reconciled this object since it started, or another manager does."

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
		return nil, noPlans
	}
	s.store.SetPlans(of, rootCausePlans(plans))
	s.planned.set(of, s.Now())
	s.actions.add(of, plans)
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
// because they are more precise than conditions. The pages of clusters and objects call it.
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
