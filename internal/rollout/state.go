package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Set is one MachineSet of a deployment.
type Set struct {
	Name string
	// Revision and Created order the MachineSets by age.
	Revision int64
	Created  time.Time
	// Desired is spec.replicas.
	Desired int32
	// Actual counts the Machines that exist, those being deleted included.
	Actual int32
	// Deleting counts those of Actual that are being deleted.
	Deleting int32
	// Available counts those of Actual that are available and not being deleted.
	Available int32
	// Free counts Machines that are not available, not being deleted, and that the MachineSet takes before any
	// available one when it scales down. Fewer than there are is safe.
	Free int32
	// Recorded is the number of replicas of the deployment that this MachineSet was last scaled for; negative
	// where that is not known.
	Recorded int32
	// Leaving MachineSets are being deleted themselves: their Machines count, and their replicas do not change.
	Leaving bool
	// InPlace: an extension can make the Machines of this old MachineSet those of the new one. It hands them over
	// instead of deleting them, unless they count as Free.
	InPlace bool
	// NotBegun counts those of Free that are handed over all the same: they are to be updated, and nothing was written for that yet.
	NotBegun int32
	// Updating counts those of Actual that are being updated in place, and are neither Available nor Free.
	Updating int32
	// Moved counts those of Actual that another MachineSet handed over, and that Desired does not count yet.
	Moved int32
}

// State is a deployment as planning sees it.
type State struct {
	Replicas int32
	Limits   Limits
	// Held stops the rollout (paused): Replicas are spread over the MachineSets as they are.
	Held bool
	// New is the MachineSet of the current template; nil where there is none. One that is about to be created is
	// a Set with a name and nothing else.
	New *Set
	// Old are all others, in any order.
	Old []Set
}

// Change is a new number of replicas for one MachineSet.
type Change struct {
	Set      string
	From, To int32
	Why      string
}

// String says what changes and why.
func (c Change) String() string {
	return fmt.Sprintf("scale %s from %d to %d: %s", c.Set, c.From, c.To, c.Why)
}

// Plan says which MachineSets get another number of replicas now, the new one first, then from the oldest to the
// newest. No change means that there is nothing to do until something happens to the Machines.
//
//	Held         proportional.go
//	OnDelete     ondelete.go
//	otherwise    rolling.go, with inplace.go for MachineSets whose Machines can be updated in place
func Plan(s State) []Change { return planned(s).changes() }

// Moving names the old MachineSets that hand over what they have too many to the new one, instead of deleting it.
func Moving(s State) map[string]bool {
	out := map[string]bool{}
	for _, e := range planned(s).old {
		if e.moves {
			out[e.Name] = true
		}
	}
	return out
}

func planned(s State) *ledger {
	l := newLedger(s)
	l.decideMoves()
	switch {
	case s.Held:
		l.proportional()
	case s.New == nil: // nothing to roll out to
	case s.Limits.OnDelete:
		l.onDelete()
	default:
		l.rollingUpdate()
	}
	return l
}

// Complete reports whether nothing is left to roll out: the new MachineSet has all replicas, all available,
// and no Machine of another is left.
func Complete(s State) bool {
	if s.New == nil || s.New.Desired != s.Replicas || s.New.Actual != s.Replicas || s.New.Available != s.Replicas {
		return false
	}
	for _, old := range s.Old {
		if old.Desired != 0 || old.Actual != 0 {
			return false
		}
	}
	return true
}

// Older orders MachineSets by age, the oldest first.
func Older(a, b Set) int {
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
}

// live counts the Machines that no one has deleted.
func (s Set) live() int32 { return s.Actual - s.Deleting }

// pending counts Machines that the MachineSet has yet to delete to come down to Desired.
func (s Set) pending() int32 { return max(0, s.live()-s.Desired) }

// missing counts Machines that the MachineSet has yet to create.
func (s Set) missing() int32 { return max(0, s.Desired-s.live()) }

// unavailable counts wanted Machines that are not available.
func (s Set) unavailable() int32 { return max(0, s.Desired-s.Available) }

// worst is how many Machines stay available if everything the MachineSet has yet to delete is as bad as can be. One that is
// being deleted keeps none, also while its Machines are not being deleted yet.
func (s Set) worst() int32 {
	if s.Leaving {
		return 0
	}
	return max(0, s.Available-max(0, s.pending()-s.Free))
}

// free counts replicas that can be given up without losing an available Machine.
func (s Set) free() int32 { return max(0, s.Free-s.pending()) + s.missing() }

// occupied is the most Machines that the MachineSet has or may still make.
func (s Set) occupied() int32 { return max(s.Desired, s.Actual) }

// entry is a MachineSet and what becomes of it.
type entry struct {
	Set
	target int32
	why    string
	// from is the number of replicas that the MachineSet has now: Desired counts those that were handed over to it as well.
	from int32
	// moves: it hands over what it has too many.
	moves bool
}

// newEntry is a MachineSet that nothing changes, but for the Machines that were handed over to it: from now on it counts them.
func newEntry(s Set) *entry {
	e := &entry{Set: s, from: s.Desired}
	if s.Moved > 0 {
		e.Desired, e.why = s.Desired+s.Moved, "it counts the Machines that were handed over to it"
	}
	e.target = e.Desired
	return e
}

// set gives the MachineSet a new number of replicas.
func (e *entry) set(target int32, why string) {
	if target != e.target {
		e.target, e.why = target, why
	}
}

// ledger collects the changes of one plan.
type ledger struct {
	State
	current *entry   // nil where there is no new MachineSet
	old     []*entry // the oldest first; none that is being deleted
	leaving []Set
	// receivable is how many Machines the new MachineSet can still be handed, beyond those that are on their way to it.
	receivable int32
}

func newLedger(s State) *ledger {
	l := &ledger{State: s}
	if s.New != nil {
		l.current = newEntry(*s.New)
	}
	for _, set := range slices.SortedFunc(slices.Values(s.Old), Older) {
		if set.Leaving {
			l.leaving = append(l.leaving, set)
			continue
		}
		if !set.InPlace { // what is being updated is deleted before anything that is available
			set.Free, set.Updating = set.Free+set.Updating, 0
		}
		l.old = append(l.old, newEntry(set))
	}
	return l
}

// entries returns the new MachineSet, if there is one, and the old ones.
func (l *ledger) entries() []*entry {
	if l.current == nil {
		return l.old
	}
	return append([]*entry{l.current}, l.old...)
}

// sum adds up a figure of all MachineSets.
func (l *ledger) sum(of func(Set) int32) int32 {
	var n int32
	for _, e := range l.entries() {
		n += of(e.Set)
	}
	for _, s := range l.leaving {
		n += of(s)
	}
	return n
}

func (l *ledger) changes() []Change {
	var out []Change
	for _, e := range l.entries() {
		if e.target != e.from {
			out = append(out, Change{Set: e.Name, From: e.from, To: e.target, Why: e.why})
		}
	}
	return out
}
