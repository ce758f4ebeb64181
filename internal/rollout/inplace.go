package rollout

// This file is the part of [Plan] for in-place updates. An old MachineSet whose Machines can be updated in place moves
// them to the new MachineSet. The old MachineSet is scaled down by at most maxUnavailable Machines, as if they were
// deleted. The new MachineSet is scaled up by one for each Machine after it has moved.
//
//	old       scales down ─► moves Machines ─► …
//	new                      Moved ─► counts ─► updates ─► Available
//
// The number of Machines therefore does not grow. Only if no Machine may be unavailable, the new MachineSet first
// creates one Machine, and the last old Machine is deleted instead of moved.

// decideMoves selects the old MachineSets that move Machines: those that support it, as long as the new MachineSet
// needs more than the Machines already moving to it. It runs before the replicas are planned, because the other steps
// treat these MachineSets differently. [Plan] and [Moving] call it through planned.
func (l *ledger) decideMoves() {
	if l.current == nil || l.Limits.OnDelete {
		return
	}
	l.receivable = l.Replicas - l.current.Desired
	for _, e := range l.old {
		if away := e.machinesToMove(); e.InPlace && l.receivable > 0 && l.receivable >= away {
			e.moves = true
			l.receivable -= away
		}
	}
}

// machinesToMove counts the Machines that the MachineSet still has to move to scale down to Desired.
func (s MachineSet) machinesToMove() int32 { return max(0, s.pending()-s.replaced()) }

// replaced counts the Machines that the MachineSet deletes even though in-place updates are possible, because an
// update would not repair them.
func (s MachineSet) replaced() int32 { return max(0, s.Free-s.NotBegun) }

// arriving counts the Machines of old MachineSets that will move to the new one.
func (l *ledger) arriving() int32 {
	var n int32
	for _, e := range l.old {
		if e.moves {
			n += max(0, e.live()-e.replaced())
		}
	}
	return n
}

// needsSpare reports whether the new MachineSet must create one Machine before any can be updated in place: none may
// become unavailable now, no change in progress will alter that, and no spare Machine exists yet.
func (l *ledger) needsSpare() bool {
	if l.arriving() == 0 || l.sum(MachineSet.worstCaseAvailable) > l.minAvailable() || l.sum(MachineSet.maxMachines) > l.Replicas || l.current.unavailable() > 0 {
		return false
	}
	for _, e := range l.old {
		if e.pending() > 0 || e.Updating > 0 || e.free() > 0 && l.freeBudget() > 0 {
			return false
		}
	}
	return true
}
