package rollout

import (
	"math/big"
	"slices"
)

// proportional gives the deployment the replicas it asks for, spread over the MachineSets by their size, and does nothing else.
// It computes from absolute sizes: how many there should be in all never follows from how many there were before. So a
// reconciliation that fails between the writes of two MachineSets is retried, and neither repeats nor loses a part:
//
//	MachineSets with replicas   all of them together
//	none                        the current one, else the newest, has the deployment's replicas
//	one                         it has the deployment's replicas
//	several, scaled             replicas + maxSurge
//	several, not scaled         as many as they have, within replicas and replicas + maxSurge
func (l *ledger) proportional() {
	active := slices.DeleteFunc(slices.Clone(l.entries()), func(e *entry) bool { return e.Desired == 0 })
	const why = "its share of spec.replicas while nothing is rolled out"
	switch len(active) {
	case 0:
		if newest := l.newest(); newest != nil {
			newest.set(l.within(0, l.Replicas), why)
		}
	case 1:
		active[0].set(l.within(active[0].Desired, l.Replicas), why)
	default:
		l.spread(active, l.held(active), why)
	}
}

// within limits the growth from one number of replicas to another to the room that there is for more Machines: those that are still
// being deleted count.
func (l *ledger) within(from, to int32) int32 {
	return min(to, from+max(0, l.most(l.Replicas)-l.sum(Set.occupied)))
}

// held is how many replicas MachineSets have together while the rollout stands still.
func (l *ledger) held(active []*entry) int32 {
	most := l.most(l.Replicas)
	var total int32
	scaled := false
	for _, e := range active {
		total += e.Desired
		scaled = scaled || l.recorded(e) != l.Replicas
	}
	if scaled {
		return l.within(total, most)
	}
	return l.within(total, min(max(total, l.Replicas), most))
}

// most is how many replicas there may be in all of a deployment of that size.
func (l *ledger) most(replicas int32) int32 {
	if replicas == 0 {
		return 0
	}
	return replicas + l.Limits.MaxSurge
}

// recorded is the size of the deployment that a MachineSet was scaled for. Where that is not known, it is the present one.
func (l *ledger) recorded(e *entry) int32 {
	if e.Recorded < 0 {
		return l.Replicas
	}
	return e.Recorded
}

// newest returns the MachineSet of the current template, or the newest other one.
func (l *ledger) newest() *entry {
	if l.current != nil || len(l.old) == 0 {
		return l.current
	}
	return l.old[len(l.old)-1]
}

// spread gives each MachineSet its share of total, one after the other, so that what rounding leaves over goes to those that come
// later. A share is that which the MachineSet has of the size it was last scaled for: it is the same before and after
// the write of any other MachineSet. No MachineSet grows where there are too many in all, and none shrinks where there are too few.
func (l *ledger) spread(active []*entry, total int32, why string) {
	shares := make([]*big.Rat, len(active))
	rest := new(big.Rat)
	least, most := make([]int32, len(active)), make([]int32, len(active))
	var have, must, can int64
	for i, e := range active {
		shares[i] = big.NewRat(int64(e.Desired), int64(max(1, l.most(l.recorded(e)))))
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
		e.set(int32(share), why)
	}
}

// rounded rounds a number that is not negative to the nearest whole one, halves up.
func rounded(r *big.Rat) int64 {
	twice := new(big.Int).Lsh(r.Num(), 1)
	twice.Add(twice, r.Denom())
	return twice.Div(twice, new(big.Int).Lsh(r.Denom(), 1)).Int64()
}
