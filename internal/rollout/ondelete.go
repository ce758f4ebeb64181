package rollout

// onDelete is the part of [Plan] for the strategy OnDelete: it scales up the new MachineSet for Machines that users
// have deleted from the old ones. The total never exceeds the desired replicas, so the new MachineSet waits until a
// deleted Machine is gone. It only sets targets in the ledger: the MachineDeployment controller scales the MachineSets.
func (l *ledger) onDelete() {
	var old, occupied int32
	for _, e := range l.old {
		if e.live() < e.target {
			e.setTarget(e.live(), "its Machines were deleted")
		}
		old += e.target
	}
	if excess := old + l.current.Desired - l.Replicas; excess > 0 {
		l.shrink(excess)
		return
	}
	for _, e := range l.old {
		occupied += max(e.target, e.Actual)
	}
	for _, s := range l.leaving {
		occupied += s.Actual
	}
	if target := l.Replicas - occupied; target > l.current.Desired {
		l.current.setTarget(target, "it receives the free replicas")
	}
}

// shrink removes replicas from the old MachineSets, starting with unavailable and missing ones, and then from the new
// one.
func (l *ledger) shrink(excess int32) {
	const why = "the deployment wants fewer replicas"
	for _, e := range l.old {
		lost := e.Desired - e.target // replicas already removed because their Machines are missing
		n := min(max(0, e.free()-lost), e.target, excess)
		e.setTarget(e.target-n, why)
		excess -= n
	}
	for _, e := range l.old {
		n := min(e.target, excess)
		e.setTarget(e.target-n, why)
		excess -= n
	}
	l.current.setTarget(l.current.target-min(l.current.target, excess), why)
}
