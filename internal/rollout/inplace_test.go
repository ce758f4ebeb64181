package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/internal/rollout"
	"github.com/slipwayhq/slipway/test/testkit"
)

// updated is a rollout of a deployment with MachineSet a whose Machines an extension can update in place.
type updated struct {
	scenario
	// except is the MachineSet whose Machines it cannot update.
	except string
	// created and deleted Machines there are after the deployment settled first; -1: it depends on the order.
	created, deleted int
}

func updates() map[string]updated {
	return map[string]updated{
		"in-place-surge": {scenario{
			reason: "none may be unavailable: one is created first, and the last old one is deleted", replicas: 3, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) { w.template("b", available) }, want: "b 3/3",
		}, "", 1, 1},
		"in-place-more-surge": {scenario{
			reason: "one more is enough, however many there may be", replicas: 4, limits: rollout.Limits{MaxSurge: 3},
			play: func(w *world) { w.template("b", available) }, want: "b 4/4",
		}, "", 1, 1},
		"in-place-unavailable": {scenario{
			reason: "one less at a time, and no Machine is created or deleted", replicas: 3, limits: rollout.Limits{MaxUnavailable: 1},
			play: func(w *world) { w.template("b", available) }, want: "b 3/3",
		}, "", 0, 0},
		"in-place-both": {scenario{
			reason: "no Machine more where some may be unavailable", replicas: 8, limits: rollout.Limits{MaxSurge: 2, MaxUnavailable: 2},
			play: func(w *world) { w.template("b", available) }, want: "b 8/8",
		}, "", 0, 0},
		"in-place-broken-new": {scenario{
			reason: "an update that fails halts the rollout; the template before replaces what failed", replicas: 3, limits: rollout.Limits{MaxUnavailable: 1},
			play: func(w *world) {
				w.template("b", broken)
				w.settle()
				if got := w.counts(); got != "a 2/2 b 0/1" {
					w.t.Errorf("halted as %s", got)
				}
				w.template("a", available)
			}, want: "a 3/3",
		}, "", 1, 1},
		"in-place-refused": {scenario{
			reason: "an update that cannot begin halts the rollout; the template before takes the Machine back", replicas: 3, limits: rollout.Limits{MaxUnavailable: 1},
			play: func(w *world) {
				w.template("b", available)
				w.current().refused = true
				w.settle()
				if got := w.counts(); got != "a 2/2 b 0/1" {
					w.t.Errorf("halted as %s", got)
				}
				w.template("a", available)
			}, want: "a 3/3",
		}, "", 0, 0},
		"in-place-broken-old": {scenario{
			reason: "a Machine that is not healthy is replaced, not updated", replicas: 4, limits: rollout.Limits{MaxUnavailable: 2},
			play: func(w *world) {
				w.turn("a", 2, broken)
				w.settle()
				w.template("b", available)
			}, want: "b 4/4",
		}, "", 1, 1},
		"in-place-in-part": {scenario{
			reason: "one of two old MachineSets can be updated, the other is replaced", replicas: 4, limits: rollout.Limits{MaxUnavailable: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(9)
				w.template("c", available)
			}, want: "c 4/4",
		}, "a", -1, -1},
		"in-place-three-sets": {scenario{
			reason: "a Machine that is being updated is waited for before it is updated once more", replicas: 4, limits: rollout.Limits{MaxUnavailable: 2},
			play: func(w *world) {
				w.template("b", available)
				w.after(7)
				w.template("c", available)
			}, want: "c 4/4",
		}, "", 0, 0},
		"in-place-scale-up": {scenario{
			reason: "what is added midway is created", replicas: 3, limits: rollout.Limits{MaxUnavailable: 1, MaxSurge: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(8)
				w.scale(6)
			}, want: "b 6/6",
		}, "", 3, 0},
		"in-place-scale-down": {scenario{
			reason: "what is taken away midway is deleted", replicas: 6, limits: rollout.Limits{MaxUnavailable: 2},
			play: func(w *world) {
				w.template("b", available)
				w.after(12)
				w.scale(2)
			}, want: "b 2/2",
		}, "", 0, 4},
		"in-place-paused": {scenario{
			reason: "Machines that were handed over are counted during a pause", replicas: 4, limits: rollout.Limits{MaxUnavailable: 2},
			play: func(w *world) {
				w.template("b", available)
				w.after(6)
				w.hold(true)
				w.settle()
				w.hold(false)
			}, want: "b 4/4",
		}, "", 0, 0},
		"in-place-deleted": {scenario{
			reason: "a Machine that is deleted in the middle is replaced", replicas: 3, limits: rollout.Limits{MaxUnavailable: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(5)
				for i := range w.current().machines {
					w.turn("b", i, deleting)
				}
			}, want: "b 3/3",
		}, "", -1, 0},
	}
}

func (u updated) runWith(t *testing.T, rng *rand.Rand, fails func(*world) bool) *world {
	t.Helper()
	created, deleted := 0, 0
	s := u.scenario
	s.play = func(w *world) {
		created, deleted = w.created, w.deleted
		w.inPlace = func(set string) bool { return set != u.except }
		u.play(w)
	}
	w := s.runWith(t, rng, fails)
	got := [2]int{w.created - created, w.deleted - deleted}
	if want := [2]int{u.created, u.deleted}; u.created >= 0 && got != want && fails == nil && rng == nil {
		t.Errorf("%s: %d Machines created and %d deleted, want %d and %d\n%s", s.reason, got[0], got[1], want[0], want[1], w.text())
	}
	return w
}

func TestSimulationsInPlace(t *testing.T) { // IP-02, IP-03, IP-07, DP-18
	for name, u := range updates() {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			fmt.Fprintf(&text, "# %s\n\n# fixed order\n%s", u.reason, u.runWith(t, nil, nil).text())
			fmt.Fprintf(&text, "\n# random order, seed 1\n%s", u.runWith(t, rand.New(rand.NewPCG(1, 1)), nil).text())
			testkit.CompareGolden(t, filepath.Join("testdata", name+".golden"), text.String())
			for seed := range uint64(randomRuns) {
				u.runWith(t, rand.New(rand.NewPCG(2, seed)), nil)
				u.runWith(t, rand.New(rand.NewPCG(5, seed)), func(w *world) bool { return w.rng.IntN(3) == 0 })
			}
			for n, all := 1, u.runWith(t, nil, nil).writes; n <= all; n++ {
				u.runWith(t, nil, func(w *world) bool { return w.writes == n })
			}
		})
	}
}

// TestRandomUpdatesInPlace rolls out random templates, of which an extension can update some: the limits hold at every step, and the
// rollout ends. Where nothing goes wrong no Machine is replaced but the one for which another was created first.
func TestRandomUpdatesInPlace(t *testing.T) { // IP-02, IP-03, IP-07
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(7, seed))
		limits := rollout.Limits{MaxSurge: int32(rng.IntN(4)), MaxUnavailable: int32(rng.IntN(3))}
		if limits == (rollout.Limits{}) {
			limits.MaxUnavailable = 1
		}
		w := newWorld(t, rng, 1+int32(rng.IntN(8)), limits)
		except := []string{"", "", "a", "b", "c"}[rng.IntN(5)]
		w.inPlace = func(set string) bool { return set != except }
		if seed%2 == 1 {
			w.fails = func() bool { return rng.IntN(4) == 0 }
		}
		smooth := except == ""
		before := [2]int{w.created, w.deleted}
		for _, name := range []string{"b", "c", "d"}[:1+rng.IntN(3)] {
			becomes := []health{available, available, available, broken, stuck}[rng.IntN(5)]
			w.template(name, becomes)
			w.current().refused = rng.IntN(5) == 0
			w.after(rng.IntN(40))
			smooth = smooth && becomes == available
			if rng.IntN(3) == 0 {
				w.scale(int32(rng.IntN(9)))
				smooth = false
			}
			if smooth {
				w.settle()
			}
		}
		w.template("z", available)
		w.settle()
		if got, want := w.counts(), fmt.Sprintf("z %d/%d", w.replicas, w.replicas); got != want {
			t.Fatalf("seed %d ends with %s, want %s\n%s", seed, got, want, w.text())
		}
		if n := w.created - before[0]; smooth && limits.MaxUnavailable > 0 && n != 0 {
			t.Fatalf("seed %d: %d Machines were created, and some may be unavailable\n%s", seed, n, w.text())
		}
	}
}

func TestMoving(t *testing.T) { // IP-07, IP-09
	old := rollout.MachineSet{Name: "a", Revision: 1, Desired: 3, Actual: 3, Available: 3, InPlace: true}
	for name, tc := range map[string]struct {
		reason string
		state  rollout.DeploymentState
		old    func(*rollout.MachineSet)
		moves  bool
		want   []string
	}{
		"unavailable": {"one may be unavailable", rollout.DeploymentState{Limits: rollout.Limits{MaxUnavailable: 1}}, nil, true,
			[]string{"scale a from 3 to 2: its Machines are updated in place"}},
		"not covered": {"no extension updates it", rollout.DeploymentState{Limits: rollout.Limits{MaxUnavailable: 1}}, func(s *rollout.MachineSet) { s.InPlace = false }, false,
			[]string{"scale a from 3 to 2: enough Machines are available without"}},
		"surge": {"one is created first", rollout.DeploymentState{Limits: rollout.Limits{MaxSurge: 2}}, nil, true,
			[]string{"scale b from 0 to 1: with one Machine more, others can be updated in place"}},
		"on delete": {"nothing is updated in place", rollout.DeploymentState{Limits: rollout.Limits{OnDelete: true}}, nil, false, nil},
		"enough": {"the new one has all that it needs", rollout.DeploymentState{Limits: rollout.Limits{MaxSurge: 1}, New: &rollout.MachineSet{Name: "b", Revision: 2, Desired: 3, Actual: 3, Available: 3}},
			func(s *rollout.MachineSet) { s.Desired, s.Actual, s.Available = 1, 1, 1 }, false,
			[]string{"scale a from 1 to 0: enough Machines are available without"}},
		"handed over": {"it counts what arrived, and nothing else moves until that is available",
			rollout.DeploymentState{Limits: rollout.Limits{MaxUnavailable: 1}, New: &rollout.MachineSet{Name: "b", Revision: 2, Actual: 1, Moved: 1}},
			func(s *rollout.MachineSet) { s.Desired, s.Actual, s.Available = 2, 2, 2 }, true,
			[]string{"scale b from 0 to 1: it counts the Machines that were transferred to it"}},
		"held": {"what was handed over is counted", rollout.DeploymentState{Paused: true, Limits: rollout.Limits{MaxUnavailable: 1}, New: &rollout.MachineSet{Name: "b", Revision: 2, Actual: 1, Moved: 1, Recorded: 3}},
			func(s *rollout.MachineSet) { s.Desired, s.Actual, s.Available, s.Recorded = 2, 2, 2, 3 }, true,
			[]string{"scale b from 0 to 1: it counts the Machines that were transferred to it"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := tc.state, old
			if tc.old != nil {
				tc.old(&a)
			}
			s.Replicas, s.Old = 3, []rollout.MachineSet{a}
			if s.New == nil {
				s.New = &rollout.MachineSet{Name: "b", Revision: 2}
			}
			var got []string
			for _, c := range rollout.Plan(s) {
				got = append(got, c.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if moves := rollout.Moving(s)["a"]; moves != tc.moves {
				t.Errorf("%s: moves %t", tc.reason, moves)
			}
		})
	}
}
