package ui

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipwayhq/slipway/internal/rootcause"
)

// maxActions is the number of actions of plans that are remembered.
const maxActions = 2000

// action is what a controller has done in one reconciliation, or in several with the same plan.
type action struct {
	Of         rootcause.Ref
	Controller string
	At         time.Time
	// Text has one line for each action, and one for each error.
	Text   string
	Failed bool
	Count  int32
}

// actionLog remembers the actions of the plans that were read. A manager returns only the last plan of each controller.
// Each source has one, and readPlans adds to it.
type actionLog struct {
	mu      sync.Mutex
	actions []action
}

// add records the actions of the plans of an object.
func (l *actionLog) add(of rootcause.Ref, plans []Plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range plans {
		if len(p.Actions) == 0 {
			continue
		}
		a := action{Of: of, Controller: p.Controller, At: p.Time, Text: strings.Join(slices.Concat(p.Actions, p.Errors), "\n"), Failed: len(p.Errors) > 0, Count: 1}
		i := lastIndex(l.actions, func(b action) bool { return b.Of == of && b.Controller == p.Controller })
		switch {
		case i >= 0 && !p.Time.After(l.actions[i].At): // the same plan is read again
		case i >= 0 && l.actions[i].Text == a.Text:
			l.actions[i].At, l.actions[i].Count = a.At, l.actions[i].Count+1
		default:
			l.actions = append(l.actions[max(0, len(l.actions)+1-maxActions):], a)
		}
	}
}

// after returns the actions about some objects after a time. The timeline of a cluster shows them.
func (l *actionLog) after(at time.Time, about func(rootcause.Ref) bool) (out []action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.actions {
		if a.At.After(at) && about(a.Of) {
			out = append(out, a)
		}
	}
	return out
}

// lastIndex returns the index of the last element with a property, or -1.
func lastIndex[T any](all []T, has func(T) bool) int {
	for i, v := range slices.Backward(all) {
		if has(v) {
			return i
		}
	}
	return -1
}
