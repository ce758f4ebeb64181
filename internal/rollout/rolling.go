package rollout

// rollingUpdate moves replicas from the old MachineSets to the new one within the limits:
//
//	new     grows as far as replicas + maxSurge leaves room, counting every Machine that exists or may yet be made
//	old     1. replicas whose loss costs nothing (broken, not created yet), as long as the new Machines work
//	        2. available ones, as long as enough stay available if everything that is yet to be deleted is as bad
//	           as can be
//
// Where an old MachineSet hands its Machines over, the new one does not grow in their place (inplace.go).
//
// An unavailable Machine of the new MachineSet takes part in neither: a bad rollout stops by itself.
func (l *ledger) rollingUpdate() {
	l.resizeNew()
	if len(l.old) == 0 {
		return
	}
	l.dropFree()
	l.dropAvailable()
	l.breakDeadlock()
}

// resizeNew brings the new MachineSet towards the replicas.
func (l *ledger) resizeNew() {
	goal := l.Replicas - l.arriving()
	switch room := l.Replicas + l.Limits.MaxSurge - l.sum(Set.occupied); {
	case l.current.Desired > l.Replicas:
		l.current.set(l.Replicas, "the deployment wants fewer replicas")
	case l.current.Desired < goal && room > 0:
		why := "the deployment wants more replicas"
		if l.sum(Set.occupied) > l.current.occupied() {
			why = "it replaces the old MachineSets"
		}
		l.current.set(min(goal, l.current.Desired+room), why)
	case room > 0 && l.needsSpare():
		l.current.set(l.current.Desired+1, "with one Machine more, others can be updated in place")
	}
}

// minAvailable is how many Machines have to stay available.
func (l *ledger) minAvailable() int32 { return l.Limits.MinAvailable(l.Replicas) }

// dropFree gives up replicas that cost nothing. It is bounded as if they did: while Machines of the new
// MachineSet are not available, it is not known that replacing helps.
func (l *ledger) dropFree() {
	budget := l.freeBudget()
	for _, e := range l.old {
		n := min(e.free(), e.target, max(0, budget))
		if n > 0 {
			e.set(e.target-n, "replicas that are not available go first")
			budget -= n
			if e.moves {
				l.receivable -= min(n, e.NotBegun)
			}
		}
	}
}

// freeBudget is how many replicas may be given up that cost nothing.
func (l *ledger) freeBudget() int32 {
	var desired int32
	for _, e := range l.entries() {
		desired += e.Desired
	}
	return desired - l.minAvailable() - l.current.unavailable()
}

// dropAvailable gives up replicas that may be available, the oldest MachineSet first.
func (l *ledger) dropAvailable() {
	budget := l.sum(Set.worst) - l.minAvailable()
	for _, e := range l.old {
		n := min(e.target, max(0, budget))
		why := "enough Machines are available without"
		if e.moves {
			n = min(n, max(0, l.receivable))
			l.receivable -= n
			why = "its Machines are updated in place"
		}
		if n > 0 {
			e.set(e.target-n, why)
			budget -= n
		}
	}
}

// breakDeadlock removes one old replica where nothing else can happen any more: the new Machines are all
// available, old ones are not, and which of them its MachineSet deletes cannot be told. To go on is worth more
// than the limit.
func (l *ledger) breakDeadlock() {
	if len(l.leaving) > 0 || l.current.unavailable() > 0 {
		return
	}
	for _, e := range l.entries() {
		if e.target != e.from || e.Desired != e.from || e.Desired != e.Actual || e.Deleting > 0 || e.Updating > 0 {
			return // still scaling, or updating
		}
	}
	for _, e := range l.old {
		if e.unavailable() > 0 {
			e.set(e.target-1, "only old replicas are not available, and nothing else can move")
			return
		}
	}
}
