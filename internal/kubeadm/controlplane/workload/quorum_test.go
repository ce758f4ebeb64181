package workload

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func member(kind string, n int, health MemberHealth) EtcdMember {
	return EtcdMember{ID: uint64(n + 1), Name: fmt.Sprint(kind, n), Health: health}
}

func (ms EtcdMembers) id(name string) uint64 {
	for _, m := range ms {
		if m.Name == name {
			return m.ID
		}
	}
	return 0
}

func members(healthy, unhealthy, learners int) EtcdMembers {
	var out EtcdMembers
	for range healthy {
		out = append(out, member("h", len(out), MemberHealthy))
	}
	for range unhealthy {
		out = append(out, member("u", len(out), MemberUnhealthy))
	}
	for range learners {
		learner := member("l", len(out), MemberHealthy)
		learner.Learner = true
		out = append(out, learner)
	}
	return out
}

// KC-19
func TestAllowsRemoval(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		members EtcdMembers
		remove  string
		want    bool
	}{
		"the only one":               {"nothing would be left", members(1, 0, 0), "h0", false},
		"one of two":                 {"both agree on it, one is left", members(2, 0, 0), "h0", true},
		"the lost one of two":        {"one alone cannot remove the other", members(1, 1, 0), "u1", false},
		"the lost one of three":      {"two agree", members(2, 1, 0), "u2", true},
		"a good one beside a lost":   {"one of two would be left", members(2, 1, 0), "h0", false},
		"the first of two lost":      {"three of four are left", members(3, 2, 0), "u3", true},
		"one of three lost of five":  {"two of five cannot agree", members(2, 3, 0), "u2", false},
		"a learner":                  {"it has no vote", members(1, 0, 1), "l1", true},
		"the voter beside a learner": {"a learner cannot lead", members(1, 0, 1), "h0", false},
		"no member":                  {"a Machine that never joined", members(3, 0, 0), "x", true},
	} {
		if got := tc.members.AllowsRemoval(tc.members.id(tc.remove)); got != tc.want {
			t.Errorf("%s: %s: %v (%s)", name, tc.reason, got, tc.members.Removal(tc.members.id(tc.remove)))
		}
	}
}

// Whatever the members, removals that are allowed, one after the other, never end without a quorum, and a cluster that has lost fewer
// than half of its members can get rid of all that it lost.
func TestRemovalsKeepQuorum(t *testing.T) { // KC-19
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 1))
		ms := members(r.IntN(8), r.IntN(8), r.IntN(3))
		recoverable := ms.HasQuorum()
		for range 20 {
			if len(ms) == 0 {
				break
			}
			id := ms[r.IntN(len(ms))].ID
			if !ms.AllowsRemoval(id) {
				continue
			}
			ms = ms.Without(id)
			if !ms.HasQuorum() || ms.Healthy() == 0 {
				t.Fatalf("seed %d: removing %d leaves %v", seed, id, ms)
			}
		}
		for _, m := range ms {
			if recoverable && m.Health != MemberHealthy && ms.AllowsRemoval(m.ID) {
				ms = ms.Without(m.ID)
			}
		}
		if recoverable && ms.Healthy() != ms.Voters() {
			t.Fatalf("seed %d: lost members stay: %v", seed, ms)
		}
	}
}
