package rollout

import (
	"math/big"
	"slices"
)

// proportional is the part of [Plan] for a deployment whose rollout is paused or blocked: it distributes the replicas
// over the MachineSets by size and rolls nothing out. The computation uses absolute sizes, so the total never depends
// on the previous total. If a reconciliation fails between the updates of two MachineSets, the retry therefore neither
// repeats nor loses a share. The MachineDeployment controller scales the MachineSets to the targets:
//
//	MachineSets with replicas   total
//	none                        the current MachineSet, or else the newest, gets the deployment's replicas
//	one                         it gets the deployment's replicas
//	several, scaled             replicas + maxSurge
//	several, not scaled         their present total, bounded by replicas and replicas + maxSurge
func (l *ledger) proportional() {
	active := slices.DeleteFunc(slices.Clone(l.entries()), func(e *entry) bool { return e.Desired == 0 })
	const why = "its share of spec.replicas while nothing is rolled out"
	switch len(active) {
	case 0:
		if newest := l.newest(); newest != nil {
			newest.setTarget(l.limitToSurge(0, l.Replicas), why)
		}
	case 1:
		active[0].setTarget(l.limitToSurge(active[0].Desired, l.Replicas), why)
	default:
		l.spread(active, l.pausedTotal(active), why)
	}
}

// limitToSurge limits scaling up to the remaining surge. Machines that are still being deleted count as well.
func (l *ledger) limitToSurge(from, to int32) int32 {
	return min(to, from+max(0, l.maxTotal(l.Replicas)-l.sum(MachineSet.maxMachines)))
}

// pausedTotal returns the total number of replicas of the MachineSets while the rollout is paused.
func (l *ledger) pausedTotal(active []*entry) int32 {
	most := l.maxTotal(l.Replicas)
	var total int32
	scaled := false
	for _, e := range active {
		total += e.Desired
		scaled = scaled || l.recorded(e) != l.Replicas
	}
	if scaled {
		return l.limitToSurge(total, most)
	}
	return l.limitToSurge(total, min(max(total, l.Replicas), most))
}

// maxTotal returns the maximum total for a deployment with the given number of replicas.
func (l *ledger) maxTotal(replicas int32) int32 {
	if replicas == 0 {
		return 0
	}
	return replicas + l.Limits.MaxSurge
}

// recorded returns the deployment size that a MachineSet was last scaled for, or the current size if it is not
// recorded.
func (l *ledger) recorded(e *entry) int32 {
	if e.Recorded < 0 {
		return l.Replicas
	}
	return e.Recorded
}

// newest returns the MachineSet of the current template, or else the newest other one.
func (l *ledger) newest() *entry {
	if l.current != nil || len(l.old) == 0 {
		return l.current
	}
	return l.old[len(l.old)-1]
}

// spread assigns each MachineSet its share of total in order, so that rounding remainders go to the later ones. A
// share is relative to the size that the MachineSet was last scaled for, which makes it independent of updates of
// other MachineSets. No MachineSet grows if the total has to shrink, and none shrinks if the total has to grow.
func (l *ledger) spread(active []*entry, total int32, why string) {
	shares := make([]*big.Rat, len(active))
	rest := new(big.Rat)
	least, most := make([]int32, len(active)), make([]int32, len(active))
	var have, must, can int64
	for i, e := range active {
		shares[i] = big.NewRat(int64(e.Desired), int64(max(1, l.maxTotal(l.recorded(e)))))
		rest.Add(rest, shares[i])
		have += int64(e.Desired)
	}
	for i, e := range active {
		least[i], most[i] = 0, e.Desired
		if int64(total) > have {
			least[i], most[i] = e.Desired, total
		}
		must, can = must+int64(least[i]), can+int64(most[i])
	}
	left := int64(total)
	for i, e := range active {
		must, can = must-int64(least[i]), can-int64(most[i])
		share := rounded(new(big.Rat).Mul(big.NewRat(left, 1), new(big.Rat).Quo(shares[i], rest)))
		share = max(min(share, int64(most[i]), left-must), int64(least[i]), left-can)
		rest.Sub(rest, shares[i])
		left -= share
		e.setTarget(int32(share), why)
	}
}

// rounded rounds a non-negative number to the nearest integer, halves up.
func rounded(r *big.Rat) int64 {
	twice := new(big.Int).Lsh(r.Num(), 1)
	twice.Add(twice, r.Denom())
	return twice.Div(twice, new(big.Int).Lsh(r.Denom(), 1)).Int64()
}
