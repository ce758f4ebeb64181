package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MachineSet is one MachineSet of a deployment. The MachineDeployment controller computes the counts from the Machines
// in its cache.
type MachineSet struct {
	Name string
	// Revision and Created order the MachineSets by age.
	Revision int64
	Created  time.Time
	// Desired is spec.replicas.
	Desired int32
	// Actual counts the existing Machines, including those being deleted.
	Actual int32
	// Deleting counts the Machines in Actual that are being deleted.
	Deleting int32
	// Available counts the Machines in Actual that are available and not being deleted.
	Available int32
	// Free counts the Machines that are unavailable, not being deleted, and deleted before any available Machine when
	// the MachineSet scales down. A value that is too low is safe.
	Free int32
	// Recorded is the number of the deployment's replicas that this MachineSet was last scaled for, or negative if
	// unknown.
	Recorded int32
	// Leaving means that the MachineSet is being deleted. Its Machines count, but its replicas do not change.
	Leaving bool
	// InPlace means that an extension can update the Machines of this old MachineSet in place. It moves them to the
	// new MachineSet instead of deleting them, except for Machines that count as Free.
	InPlace bool
	// NotBegun counts the Machines in Free that are moved nevertheless, because their in-place update has not started
	// yet.
	NotBegun int32
	// Updating counts the Machines in Actual that are being updated in place. They are neither Available nor Free.
	Updating int32
	// Moved counts the Machines in Actual that moved from another MachineSet and are not included in Desired yet.
	Moved int32
}

// DeploymentState is the input of a plan: a deployment with its MachineSets. The MachineDeployment controller fills it
// in each reconciliation.
type DeploymentState struct {
	Replicas int32
	Limits   Limits
	// Paused means that the rollout is paused. Replicas are distributed over the existing MachineSets.
	Paused bool
	// New is the MachineSet of the current template, or nil if there is none. A MachineSet that is about to be
	// created only has a name.
	New *MachineSet
	// Old contains all other MachineSets in any order.
	Old []MachineSet
}

// Change is a new number of replicas for one MachineSet. The MachineDeployment controller scales the MachineSets
// accordingly.
type Change struct {
	Set      string
	From, To int32
	// Why is the reason, which users read in events and logs.
	Why string
}

func (c Change) String() string {
	return fmt.Sprintf("scale %s from %d to %d: %s", c.Set, c.From, c.To, c.Why)
}

// Plan returns the MachineSets to scale now, starting with the new one, followed by the others from oldest to newest.
// The MachineDeployment controller calls it in each reconciliation. An empty plan means that nothing can change until
// the state of a Machine changes.
//
//	paused       proportional.go
//	OnDelete     ondelete.go
//	otherwise    rolling.go, with inplace.go for MachineSets whose Machines can be updated in place
func Plan(s DeploymentState) []Change { return planned(s).changes() }

// Moving returns the names of the old MachineSets that move their surplus Machines to the new one instead of deleting
// them. The MachineDeployment controller writes the result to annotations, which the MachineSet controller follows.
func Moving(s DeploymentState) map[string]bool {
	out := map[string]bool{}
	for _, e := range planned(s).old {
		if e.moves {
			out[e.Name] = true
		}
	}
	return out
}

func planned(s DeploymentState) *ledger {
	l := newLedger(s)
	l.decideMoves()
	switch {
	case s.Paused:
		l.proportional()
	case s.New == nil: // nothing to roll out to
	case s.Limits.OnDelete:
		l.onDelete()
	default:
		l.rollingUpdate()
	}
	return l
}

// Complete reports whether the rollout is complete: the new MachineSet has all replicas, all of them are available,
// and no other MachineSet has Machines. The MachineDeployment controller calls it in each reconciliation of a rollout.
func Complete(s DeploymentState) bool {
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

// Older orders MachineSets by age, oldest first.
func Older(a, b MachineSet) int {
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
}

// live counts the Machines that are not being deleted.
func (s MachineSet) live() int32 { return s.Actual - s.Deleting }

// pending counts the Machines that the MachineSet still has to delete to scale down to Desired.
func (s MachineSet) pending() int32 { return max(0, s.live()-s.Desired) }

// missing counts the Machines that the MachineSet still has to create.
func (s MachineSet) missing() int32 { return max(0, s.Desired-s.live()) }

// unavailable counts desired Machines that are not available. rolling.go and inplace.go call it and the counts below
// it.
func (s MachineSet) unavailable() int32 { return max(0, s.Desired-s.Available) }

// worstCaseAvailable counts the Machines that remain available if all pending deletions remove available Machines. The
// count is zero for a MachineSet that is being deleted, even if its Machines are not being deleted yet.
func (s MachineSet) worstCaseAvailable() int32 {
	if s.Leaving {
		return 0
	}
	return max(0, s.Available-max(0, s.pending()-s.Free))
}

// free counts the replicas that can be removed without deleting an available Machine.
func (s MachineSet) free() int32 { return max(0, s.Free-s.pending()) + s.missing() }

// maxMachines returns the maximum number of Machines that the MachineSet has or may still create.
func (s MachineSet) maxMachines() int32 { return max(s.Desired, s.Actual) }

// entry is a MachineSet with its planned replicas. The ledger has one for each MachineSet.
type entry struct {
	MachineSet
	target int32
	why    string
	// from is the present spec.replicas. In contrast, Desired also includes the Machines that moved to the
	// MachineSet.
	from int32
	// moves means that the MachineSet moves its surplus Machines to the new one.
	moves bool
}

// newEntry returns an entry without changes, except that replicas include the Machines that moved to the MachineSet.
func newEntry(s MachineSet) *entry {
	e := &entry{MachineSet: s, from: s.Desired}
	if s.Moved > 0 {
		e.Desired, e.why = s.Desired+s.Moved, "it counts the Machines that were transferred to it"
	}
	e.target = e.Desired
	return e
}

// setTarget changes the planned replicas.
func (e *entry) setTarget(target int32, why string) {
	if target != e.target {
		e.target, e.why = target, why
	}
}

// ledger is the working state of one plan: the MachineSets with the replicas that are planned so far. The functions of
// the strategies (rolling.go, ondelete.go, proportional.go) read it and set the targets.
type ledger struct {
	DeploymentState
	current *entry   // nil if there is no new MachineSet
	old     []*entry // oldest first, without MachineSets that are being deleted
	leaving []MachineSet
	// receivable is how many more Machines can move to the new MachineSet, in addition to those already moving.
	receivable int32
}

func newLedger(s DeploymentState) *ledger {
	l := &ledger{DeploymentState: s}
	if s.New != nil {
		l.current = newEntry(*s.New)
	}
	for _, set := range slices.SortedFunc(slices.Values(s.Old), Older) {
		if set.Leaving {
			l.leaving = append(l.leaving, set)
			continue
		}
		if !set.InPlace { // Machines in an update are deleted before available ones
			set.Free, set.Updating = set.Free+set.Updating, 0
		}
		l.old = append(l.old, newEntry(set))
	}
	return l
}

// entries returns the new MachineSet, if it exists, and the old ones.
func (l *ledger) entries() []*entry {
	if l.current == nil {
		return l.old
	}
	return append([]*entry{l.current}, l.old...)
}

// sum adds up a count over all MachineSets.
func (l *ledger) sum(of func(MachineSet) int32) int32 {
	var n int32
	for _, e := range l.entries() {
		n += of(e.MachineSet)
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
