package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/rollout"
	"github.com/slipwayhq/slipway/test/testkit"
)

// randomRuns is how many seeds each scenario is checked with besides its golden file.
const randomRuns = 150

// scenario is a rollout from a settled deployment with MachineSet a.
type scenario struct {
	reason   string
	replicas int32
	limits   rollout.Limits
	frail    bool
	play     func(*world)
	// want is every MachineSet in the end: available/desired.
	want string
}

func scenarios() map[string]scenario {
	return map[string]scenario{
		"surge": { // DP-06
			reason: "one more at a time, never one less", replicas: 3, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) { w.template("b", available) }, want: "b 3/3",
		},
		"unavailable": { // DP-06
			reason: "one less at a time, never one more", replicas: 3, limits: rollout.Limits{MaxUnavailable: 1},
			play: func(w *world) { w.template("b", available) }, want: "b 3/3",
		},
		"both": { // DP-06
			reason: "25% of each", replicas: 8, limits: rollout.Limits{MaxSurge: 2, MaxUnavailable: 2},
			play: func(w *world) { w.template("b", available) }, want: "b 8/8",
		},
		"three-sets": { // DP-06
			reason: "the oldest MachineSet goes first", replicas: 4, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(14)
				w.template("c", available)
			}, want: "c 4/4",
		},
		"broken-new": { // DP-07, DP-02
			reason:   "a template that does not work halts with enough available Machines; the old one goes back",
			replicas: 3, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) {
				w.template("b", broken)
				w.settle()
				if got := w.counts(); got != "a 3/3 b 0/1" {
					w.t.Errorf("halted as %s", got)
				}
				w.template("a", available)
			}, want: "a 3/3",
		},
		"broken-new-unavailable": { // DP-07
			reason: "the same where Machines may be unavailable", replicas: 6, limits: rollout.Limits{MaxSurge: 1, MaxUnavailable: 2},
			play: func(w *world) { w.template("b", starting) }, want: "a 4/4 b 0/3",
		},
		"broken-old": { // DP-06
			reason: "what is broken goes first, although available ones are older", replicas: 4, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) {
				w.turn("a", 2, broken)
				w.turn("a", 3, broken)
				w.settle()
				w.template("b", available)
			}, want: "b 4/4",
		},
		"deadlock": { // DP-08
			reason:   "an old Machine is not available and cannot be told from the others: one is given up",
			replicas: 3, limits: rollout.Limits{MaxSurge: 1}, frail: true,
			play: func(w *world) {
				w.turn("a", 1, stuck)
				w.turn("a", 2, stuck)
				w.settle()
				w.template("b", available)
			}, want: "b 3/3",
		},
		"on-delete": { // DP-09
			reason: "nothing but what the user deletes is replaced", replicas: 3, limits: rollout.Limits{OnDelete: true},
			play: func(w *world) {
				w.template("b", available)
				w.settle()
				if got := w.counts(); got != "a 3/3 b 0/0" {
					w.t.Errorf("without a deletion: %s", got)
				}
				w.turn("a", 1, deleting)
				w.settle()
				if got := w.counts(); got != "a 2/2 b 1/1" {
					w.t.Errorf("after one deletion: %s", got)
				}
				w.scale(2)
				w.settle()
				if got := w.counts(); got != "a 1/1 b 1/1" {
					w.t.Errorf("after scaling down: %s", got)
				}
				w.scale(4)
				w.settle()
				w.turn("a", 0, deleting)
			}, want: "b 4/4",
		},
		"scale-up-midway": { // DP-06
			reason: "what is added is added to the new MachineSet", replicas: 3, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(6)
				w.scale(6)
			}, want: "b 6/6",
		},
		"scale-down-midway": { // DP-06
			reason: "what is taken away is taken from the old MachineSet", replicas: 6, limits: rollout.Limits{MaxSurge: 2},
			play: func(w *world) {
				w.template("b", available)
				w.after(8)
				w.scale(2)
			}, want: "b 2/2",
		},
		"paused": { // DP-11
			reason: "a pause stops the rollout, scaling keeps the proportions", replicas: 4, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) {
				w.template("b", broken)
				w.settle()
				w.hold(true)
				w.settle()
				w.scale(9)
				w.settle()
				if got := w.counts(); got != "a 8/8 b 0/2" {
					w.t.Errorf("scaled up while paused: %s", got)
				}
				w.scale(4)
				w.settle()
				if got := w.counts(); got != "a 4/4 b 0/1" {
					w.t.Errorf("scaled down while paused: %s", got)
				}
				w.hold(false)
				w.template("c", available)
			}, want: "c 4/4",
		},
		"paused-midway": { // DP-11
			reason: "a pause in the middle of a rollout, scaled in both directions", replicas: 8, limits: rollout.Limits{MaxSurge: 2, MaxUnavailable: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(25)
				w.hold(true)
				w.settle()
				for _, n := range []int32{4, 13, 6} {
					w.scale(n)
					w.settle()
					if got := w.desired(); got < n || got > n+2 {
						w.t.Errorf("scaled to %d while paused: %s", n, w.counts())
					}
				}
				w.hold(false)
			}, want: "b 6/6",
		},
		"scaled-then-paused": { // DP-11
			reason: "a pause begins before a rollout has scaled all that it has to", replicas: 8, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(30)
				w.scale(2)
				w.planPass()
				w.hold(true)
				w.settle()
				if got := w.desired(); got < 2 || got > 3 {
					w.t.Errorf("paused: %s", w.counts())
				}
				w.hold(false)
			}, want: "b 2/2",
		},
		"to-zero": { // DP-06
			reason: "no replicas, no Machines", replicas: 3, limits: rollout.Limits{MaxSurge: 1},
			play: func(w *world) {
				w.template("b", available)
				w.after(5)
				w.scale(0)
			}, want: "b 0/0",
		},
	}
}

// run plays a scenario to its end.
func (s scenario) run(t *testing.T, rng *rand.Rand) *world { return s.runWith(t, rng, nil) }

// runWith plays a scenario in a world where writes of the deployment's controller fail.
func (s scenario) runWith(t *testing.T, rng *rand.Rand, fails func(*world) bool) *world {
	t.Helper()
	w := newWorld(t, rng, s.replicas, s.limits)
	w.frail = s.frail
	if fails != nil {
		w.fails = func() bool { return fails(w) }
	}
	s.play(w)
	w.settle()
	if got := w.counts(); got != s.want {
		t.Errorf("%s: ends with %s, want %s\n%s", s.reason, got, s.want, w.text())
	}
	return w
}

func TestSimulations(t *testing.T) { // DP-06, DP-07, DP-08, DP-09, DP-11, DP-20
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			fmt.Fprintf(&text, "# %s\n\n# fixed order\n%s", s.reason, s.run(t, nil).text())
			fmt.Fprintf(&text, "\n# random order, seed 1\n%s", s.run(t, rand.New(rand.NewPCG(1, 1))).text())
			testkit.CompareGolden(t, filepath.Join("testdata", name+".golden"), text.String())
			for seed := range uint64(randomRuns) {
				s.run(t, rand.New(rand.NewPCG(2, seed)))
			}
		})
	}
}

// TestEveryWriteFailsOnce plays each scenario once for each of the writes of MachineSets, which fails: in a fixed order, and in random
// ones. The invariants hold at every step, and the end is the same.
func TestEveryWriteFailsOnce(t *testing.T) { // DP-06, DP-09, DP-11
	const seeds = 12
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(seeds + 1) {
				random := func() *rand.Rand {
					if seed == seeds {
						return nil
					}
					return rand.New(rand.NewPCG(4, seed))
				}
				for n, all := 1, s.run(t, random()).writes; n <= all; n++ {
					if s.runWith(t, random(), func(w *world) bool { return w.writes == n }); t.Failed() {
						t.Fatalf("seed %d, write %d of %d", seed, n, all)
					}
				}
			}
		})
	}
}

// TestWritesFailOften lets every third write fail.
func TestWritesFailOften(t *testing.T) { // DP-06, DP-09, DP-11
	for name, s := range scenarios() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(randomRuns) {
				s.runWith(t, rand.New(rand.NewPCG(5, seed)), func(w *world) bool { return w.rng.IntN(3) == 0 })
			}
		})
	}
}

// TestRandomDeployments rolls out over random numbers, with pauses and with writes that fail: the limits hold at every step, a paused
// deployment has the replicas it asks for, and the rollout ends.
func TestRandomDeployments(t *testing.T) { // DP-06, DP-11, DP-20
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(3, seed))
		limits := rollout.Limits{MaxSurge: int32(rng.IntN(4)), MaxUnavailable: int32(rng.IntN(3))}
		if limits == (rollout.Limits{}) {
			limits.MaxUnavailable = 1
		}
		w := newWorld(t, rng, int32(rng.IntN(9)), limits)
		if seed%2 == 1 {
			w.fails = func() bool { return rng.IntN(4) == 0 }
		}
		for _, name := range []string{"b", "c", "d"}[:1+rng.IntN(3)] {
			w.template(name, []health{available, available, broken, stuck}[rng.IntN(4)])
			w.after(rng.IntN(40))
			w.hold(rng.IntN(2) == 0)
			if rng.IntN(3) > 0 {
				w.scale(int32(rng.IntN(9)))
			}
			if w.held && rng.IntN(2) == 0 {
				w.settle()
				if n := w.desired(); n < w.replicas || n > w.replicas+limits.MaxSurge {
					t.Fatalf("DP-11: seed %d: %d replicas while paused\n%s", seed, n, w.text())
				}
			}
			w.hold(false)
		}
		w.template("z", available)
		w.settle()
		if got, want := w.counts(), fmt.Sprintf("z %d/%d", w.replicas, w.replicas); got != want {
			t.Fatalf("seed %d ends with %s, want %s\n%s", seed, got, want, w.text())
		}
	}
}
