package machinepool

// spread assigns failure domains to the machines that a plan of [decide] creates: always one of those with the fewest
// machines of the pool.
type spread struct {
	domains []string
	used    map[string]int
}

// newSpread returns the spread of the existing machines. Machines that are being deleted do not count. [decide] calls
// it when it creates machines.
func newSpread(s snapshot) *spread {
	out := &spread{domains: s.Pool.Spec.FailureDomains, used: map[string]int{}}
	for _, m := range s.Members {
		if !m.deleting() {
			out.used[m.Local.Spec.FailureDomain]++
		}
	}
	return out
}

// next returns the failure domain of the next machine, empty if the pool has none. [decide] calls it once for each new
// machine.
func (s *spread) next() string {
	best := ""
	for _, d := range s.domains {
		if best == "" || s.used[d] < s.used[best] {
			best = d
		}
	}
	s.used[best]++
	return best
}
