package rollout

// rollingUpdate is the part of [Plan] for the strategy RollingUpdate. It moves replicas from the old MachineSets to the
// new one within maxSurge and maxUnavailable:
//
//	new     scales up to replicas + maxSurge, counting every Machine that exists or may still be created
//	old     1. unavailable and missing replicas, as long as the new Machines are available
//	        2. available replicas, as long as enough Machines remain available even if every pending deletion
//	           removes an available Machine
//
// If an old MachineSet moves its Machines (see inplace.go), the new MachineSet is not scaled up for them.
//
// Both steps stop while a Machine of the new MachineSet is unavailable, so a bad rollout stops by itself. They only
// set targets in the ledger: the MachineDeployment controller scales the MachineSets. Each change of a rule changes the
// rollouts in testdata, and simulation_test.go checks that they converge.
func (l *ledger) rollingUpdate() {
	l.resizeNew()
	if len(l.old) == 0 {
		return
	}
	l.dropFree()
	l.dropAvailable()
	l.breakDeadlock()
}

// resizeNew scales the new MachineSet towards the desired replicas.
func (l *ledger) resizeNew() {
	goal := l.Replicas - l.arriving()
	switch room := l.Replicas + l.Limits.MaxSurge - l.sum(MachineSet.maxMachines); {
	case l.current.Desired > l.Replicas:
		l.current.setTarget(l.Replicas, "the deployment wants fewer replicas")
	case l.current.Desired < goal && room > 0:
		why := "the deployment wants more replicas"
		if l.sum(MachineSet.maxMachines) > l.current.maxMachines() {
			why = "it replaces the old MachineSets"
		}
		l.current.setTarget(min(goal, l.current.Desired+room), why)
	case room > 0 && l.needsSpare():
		l.current.setTarget(l.current.Desired+1, "with one Machine more, others can be updated in place")
	}
}

// minAvailable returns how many Machines must remain available.
func (l *ledger) minAvailable() int32 { return l.Limits.MinAvailable(l.Replicas) }

// dropFree removes unavailable and missing replicas (see [MachineSet.Free]). The number is limited as if they were
// available, because replacing them may not help while Machines of the new MachineSet are unavailable.
func (l *ledger) dropFree() {
	budget := l.freeBudget()
	for _, e := range l.old {
		n := min(e.free(), e.target, max(0, budget))
		if n > 0 {
			e.setTarget(e.target-n, "replicas that are not available go first")
			budget -= n
			if e.moves {
				l.receivable -= min(n, e.NotBegun)
			}
		}
	}
}

// freeBudget returns how many unavailable and missing replicas may be removed.
func (l *ledger) freeBudget() int32 {
	var desired int32
	for _, e := range l.entries() {
		desired += e.Desired
	}
	return desired - l.minAvailable() - l.current.unavailable()
}

// dropAvailable removes replicas that may be available, starting with the oldest MachineSet.
func (l *ledger) dropAvailable() {
	budget := l.sum(MachineSet.worstCaseAvailable) - l.minAvailable()
	for _, e := range l.old {
		n := min(e.target, max(0, budget))
		why := "enough Machines are available without"
		if e.moves {
			n = min(n, max(0, l.receivable))
			l.receivable -= n
			why = "its Machines are updated in place"
		}
		if n > 0 {
			e.setTarget(e.target-n, why)
			budget -= n
		}
	}
}

// breakDeadlock removes one old replica if the rollout cannot progress otherwise: all new Machines are available,
// some old ones are not, and it is undetermined which of them the MachineSet would delete. Progress takes precedence
// over the limit.
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
			e.setTarget(e.target-1, "only old replicas are not available, and nothing else can move")
			return
		}
	}
}
