package rollout

// A MachineSet whose Machines can be updated in place hands them over to the new one: it shrinks by as many as may be unavailable, as
// if they were deleted, and the new one grows by each Machine that arrived, not before.
//
//	old       shrinks ─► hands over ─────────► …
//	new                  Moved ─► counts it ─► updates it ─► Available
//
// So there are never more Machines than before. Only where none may be unavailable the new MachineSet creates one first; it is the
// last old Machine that is deleted in its place.

// decideMoves says which old MachineSets hand over Machines: those that can, while the new one needs more than are on their
// way to it.
func (l *ledger) decideMoves() {
	if l.current == nil || l.Limits.OnDelete {
		return
	}
	l.receivable = l.Replicas - l.current.Desired
	for _, e := range l.old {
		if away := e.handsOver(); e.InPlace && l.receivable > 0 && l.receivable >= away {
			e.moves = true
			l.receivable -= away
		}
	}
}

// handsOver counts Machines that the MachineSet has yet to hand over to come down to Desired.
func (s Set) handsOver() int32 { return max(0, s.pending()-s.replaced()) }

// replaced counts the Machines that the MachineSet deletes, though it hands over what can be updated in place: an update would not
// help them.
func (s Set) replaced() int32 { return max(0, s.Free-s.NotBegun) }

// arriving counts the Machines of old MachineSets that become those of the new one.
func (l *ledger) arriving() int32 {
	var n int32
	for _, e := range l.old {
		if e.moves {
			n += max(0, e.live()-e.replaced())
		}
	}
	return n
}

// needsSpare reports whether no Machine can be updated in place before there is one more: none may become unavailable now, nothing
// that happens already will change that, and there is no such Machine yet.
func (l *ledger) needsSpare() bool {
	if l.arriving() == 0 || l.sum(Set.worst) > l.minAvailable() || l.sum(Set.occupied) > l.Replicas || l.current.unavailable() > 0 {
		return false
	}
	for _, e := range l.old {
		if e.pending() > 0 || e.Updating > 0 || e.free() > 0 && l.freeBudget() > 0 {
			return false
		}
	}
	return true
}
