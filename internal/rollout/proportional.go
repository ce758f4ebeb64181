package rollout

import "slices"

// proportional spreads a change of the deployment's replicas over the MachineSets, by their size, and does nothing
// else (DP-11). What was added or taken away is told by the number of replicas that the MachineSets were last scaled
// for.
func (l *ledger) proportional() {
	active := slices.DeleteFunc(slices.Clone(l.entries()), func(e *entry) bool { return e.Desired == 0 })
	const why = "the deployment was scaled during its pause"
	switch len(active) {
	case 0:
		if newest := l.newest(); newest != nil {
			newest.set(l.Replicas, why)
		}
		return
	case 1:
		active[0].set(l.Replicas, why)
		return
	}
	recorded := int32(-1)
	var total int32
	for _, e := range active {
		recorded = max(recorded, e.Recorded)
		total += e.Desired
	}
	if recorded < 0 || recorded == l.Replicas {
		return
	}
	if l.Replicas == 0 {
		for _, e := range active {
			e.set(0, why)
		}
		return
	}
	spread(active, max(0, total+l.Replicas-recorded), why)
}

// newest returns the MachineSet of the current template, or the newest other one.
func (l *ledger) newest() *entry {
	if l.current != nil || len(l.old) == 0 {
		return l.current
	}
	return l.old[len(l.old)-1]
}

// spread gives each MachineSet its share of total; what rounding leaves over goes to those that lost most by it, the
// newest before others.
func spread(active []*entry, total int32, why string) {
	var have, given int32
	for _, e := range active {
		have += e.Desired
	}
	type share struct {
		*entry
		whole     int32
		remainder int64
	}
	shares := make([]share, 0, len(active))
	for _, e := range active {
		exact := int64(e.Desired) * int64(total)
		s := share{entry: e, whole: int32(exact / int64(have)), remainder: exact % int64(have)}
		shares = append(shares, s)
		given += s.whole
	}
	slices.SortStableFunc(shares, func(a, b share) int {
		if a.remainder != b.remainder {
			return int(b.remainder - a.remainder)
		}
		return Older(b.Set, a.Set)
	})
	for i := range shares {
		if given < total {
			shares[i].whole++
			given++
		}
		shares[i].set(shares[i].whole, why)
	}
}
