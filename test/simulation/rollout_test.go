package simulation

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/test/testkit"
)

// rolloutSeeds is how many random orders each scenario is played in besides its golden file.
const rolloutSeeds = 10

func strategy(surge, unavailable string) clusterv1.MachineDeploymentRolloutStrategy {
	s, u := intstr.Parse(surge), intstr.Parse(unavailable)
	return clusterv1.MachineDeploymentRolloutStrategy{
		Type:          clusterv1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: &s, MaxUnavailable: &u},
	}
}

// rolloutScenario begins with a deployment that has just been made.
type rolloutScenario struct {
	reason   string
	replicas int32
	strategy clusterv1.MachineDeploymentRolloutStrategy
	frail    bool
	play     func(*rolled)
	// want is every MachineSet in the end: version, available/desired.
	want string
	// rolls: the rollout is not over in the end.
	rolls bool
}

func rolloutScenarios() map[string]rolloutScenario {
	next := func(w *rolled) { w.expect("made", "v1.36.1 3/3"); w.version("v1.36.2", works) }
	return map[string]rolloutScenario{
		"surge": {reason: "one more at a time, never one less", replicas: 3, strategy: strategy("1", "0"), play: next, want: "v1.36.2 3/3"},
		"unavailable": {reason: "one less at a time, never one more", replicas: 3, strategy: strategy("0", "1"), play: next,
			want: "v1.36.2 3/3"},
		"percents": { // DP-06
			reason: "a third more, a fifth less, of what the replicas are at the time", replicas: 6, strategy: strategy("33%", "20%"),
			play: func(w *rolled) {
				w.expect("made", "v1.36.1 6/6")
				w.version("v1.36.2", works)
				w.settle(12)
				w.scale(10)
				w.settle(12)
				w.scale(3)
			}, want: "v1.36.2 3/3",
		},
		"broken": { // DP-07
			reason: "a version that does not work halts; the one before it is used again", replicas: 3, strategy: strategy("1", "0"),
			play: func(w *rolled) {
				w.expect("made", "v1.36.1 3/3")
				w.version("v1.36.2", breaks)
				w.expect("halted", "v1.36.1 3/3 v1.36.2 0/1")
				c := condition.Set(w.deployment().Status.Conditions).Get(clusterv1.MachineDeploymentRollingOutCondition)
				if want := "Rolling out 3 not up-to-date replicas\n* Version v1.36.1, v1.36.2 required"; c.Message != want {
					w.t.Errorf("DP-12: %s", c.Message)
				}
				w.version("v1.36.1", works)
			}, want: "v1.36.1 3/3",
		},
		"deadlock": { // DP-08
			reason: "old Machines are not available and cannot be told from the others", replicas: 3, strategy: strategy("1", "0"), frail: true,
			play: func(w *rolled) {
				w.expect("made", "v1.36.1 3/3")
				w.turn("v1.36.1", 1, stalls)
				w.turn("v1.36.1", 2, stalls)
				w.settle()
				w.version("v1.36.2", works)
			}, want: "v1.36.2 3/3",
		},
		"on-delete": {reason: "nothing but what the user deletes is replaced", replicas: 3, play: onDelete, want: "v1.36.2 4/4",
			strategy: clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}},
		"paused": { // DP-11
			reason: "a pause stops the rollout, scaling keeps the proportions", replicas: 4, strategy: strategy("1", "0"), play: paused,
			want: "v1.36.2 4/4",
		},
		"rollout-after": {reason: "every Machine is replaced once", replicas: 2, strategy: strategy("1", "0"), play: rolloutAfter, want: "v1.36.1 2/2"},
		"in-place":      {reason: "what Machines take over needs no new ones", replicas: 2, strategy: strategy("1", "0"), play: inPlace, want: "v1.36.1 2/2"},
		"in-place-old": {reason: "those of an older template take it over too, although no rollout gets to them", replicas: 3, play: inPlaceOld, want: "v1.36.1 2/2 v1.36.2 1/1",
			strategy: clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.OnDeleteMachineDeploymentStrategyType}, rolls: true},
		"adoption":            {reason: "what lost its owners is found again", replicas: 2, strategy: strategy("1", "0"), play: adoption, want: "v1.36.1 2/2"},
		"name-template":       {reason: "names are as asked for, from the next Machine on", replicas: 1, strategy: strategy("1", "0"), play: naming, want: "v1.36.2 2/2"},
		"three-at-once":       {reason: "the oldest version goes first", replicas: 4, strategy: strategy("1", "0"), play: threeVersions, want: "v1.36.3 4/4"},
		"broken-old-go-first": {reason: "what is broken goes first", replicas: 4, strategy: strategy("1", "0"), play: brokenOld, want: "v1.36.2 4/4"},
	}
}

func onDelete(w *rolled) { // DP-09, MS-11
	w.expect("made", "v1.36.1 3/3")
	w.version("v1.36.2", works)
	w.expect("without a deletion", "v1.36.1 3/3 v1.36.2 0/0")
	w.remove("v1.36.1")
	w.expect("after one deletion", "v1.36.1 2/2 v1.36.2 1/1")
	w.scale(2)
	w.expect("after scaling down", "v1.36.1 1/1 v1.36.2 1/1")
	w.scale(4)
	w.expect("after scaling up", "v1.36.1 1/1 v1.36.2 3/3")
	w.remove("v1.36.1")
}

func paused(w *rolled) { // DP-11
	w.expect("made", "v1.36.1 4/4")
	w.version("v1.36.2", breaks)
	w.settle()
	w.user("pause", func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(true) })
	w.settle()
	w.scale(9)
	w.expect("scaled up while paused", "v1.36.1 8/8 v1.36.2 0/2")
	w.scale(4)
	w.expect("scaled down while paused", "v1.36.1 4/4 v1.36.2 0/1")
	w.user("go on", func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(false) })
	w.turn("v1.36.2", 0, works)
	w.fates["v1.36.2"] = works
}

func rolloutAfter(w *rolled) { // DP-10, DP-02
	w.expect("made", "v1.36.1 2/2")
	before := names(w)
	w.pass(time.Hour)
	w.user("roll out after now", func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After = metav1.NewTime(w.world.Now()) })
	w.expect("rolled out", "v1.36.1 2/2")
	after := names(w)
	for _, name := range after {
		if slices.Contains(before, name) {
			w.t.Errorf("DP-10: %s was there before", name)
		}
	}
	w.pass(time.Hour)
	w.user("annotate", func(d *clusterv1.MachineDeployment) {
		d.Annotations["a"] = "b"
	})
	w.settle()
	if diff := cmp.Diff(after, names(w)); diff != "" {
		w.t.Errorf("DP-10: once is enough:\n%s", diff)
	}
}

func inPlace(w *rolled) { // MS-08, DP-02, DP-05
	w.expect("made", "v1.36.1 2/2")
	changeInPlace(w)
}

// inPlaceOld changes a paused deployment with two MachineSets whose Machines are replaced when a user deletes them.
func inPlaceOld(w *rolled) { // MS-08, DP-02, DP-05, DP-09, DP-11
	w.expect("made", "v1.36.1 3/3")
	w.version("v1.36.2", works)
	w.settle()
	w.remove("v1.36.1")
	w.expect("one is replaced", "v1.36.1 2/2 v1.36.2 1/1")
	w.user("pause", func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(true) })
	changeInPlace(w)
	w.user("change it once more", func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "md", "tier": "silver"}
	})
	w.settle()
	for _, m := range w.machines() {
		if m.Labels["tier"] != "silver" {
			w.t.Errorf("MS-08: %s has %v", m.Name, m.Labels)
		}
	}
	w.user("go on", func(d *clusterv1.MachineDeployment) { d.Spec.Paused = ptr.To(false) })
	w.settle()
}

// changeInPlace changes all that Machines take over, and looks whether they have.
func changeInPlace(w *rolled) {
	before := names(w)
	w.user("change what needs no rollout", func(d *clusterv1.MachineDeployment) {
		t := &d.Spec.Template
		t.Labels = map[string]string{clusterv1.MachineDeploymentNameLabel: "md", "tier": "gold"}
		t.Annotations = map[string]string{"note": "new"}
		t.Spec.MinReadySeconds, t.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To(int32(5)), ptr.To(int32(60))
		t.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Gate"}}
		t.Spec.Taints = []clusterv1.MachineTaint{{Key: "k", Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}}
	})
	w.settle()
	if diff := cmp.Diff(before, names(w)); diff != "" {
		w.t.Errorf("DP-02: Machines were replaced:\n%s", diff)
	}
	for _, m := range w.machines() {
		if m.Labels["tier"] != "gold" || m.Annotations["note"] != "new" || m.Spec.MinReadySeconds == nil || len(m.Spec.Taints) != 1 ||
			len(m.Spec.ReadinessGates) != 1 || *m.Spec.Deletion.NodeDrainTimeoutSeconds != 60 {
			w.t.Errorf("MS-08: %s has %v %v %+v", m.Name, m.Labels, m.Annotations, m.Spec)
		}
	}
}

func adoption(w *rolled) { // MS-03, OR-01
	w.expect("made", "v1.36.1 2/2")
	before := names(w)
	w.say("user: takes away all owners")
	for _, set := range w.sets() {
		play(w.management, set, func(set *clusterv1.MachineSet) { set.OwnerReferences = nil })
	}
	for _, m := range w.machines() {
		play(w.management, m, func(m *clusterv1.Machine) { m.OwnerReferences = nil })
	}
	w.settle()
	if diff := cmp.Diff(before, names(w)); diff != "" {
		w.t.Errorf("MS-03: Machines were replaced:\n%s", diff)
	}
}

func naming(w *rolled) { // MS-06
	w.expect("made", "v1.36.1 1/1")
	before := names(w)
	w.user("name Machines", func(d *clusterv1.MachineDeployment) {
		d.Spec.MachineNaming.Template = "{{ .cluster.name }}-node-{{ .random }}"
	})
	w.settle()
	if diff := cmp.Diff(before, names(w)); diff != "" {
		w.t.Errorf("MS-06: Machines were replaced:\n%s", diff)
	}
	w.scale(2)
	w.expect("scaled", "v1.36.1 2/2")
	w.version("v1.36.2", works)
	w.settle()
	for _, name := range names(w) {
		if !strings.HasPrefix(name, "c-node-") {
			w.t.Errorf("MS-06: name %s", name)
		}
	}
}

func threeVersions(w *rolled) { // DP-06
	w.expect("made", "v1.36.1 4/4")
	w.version("v1.36.2", works)
	w.settle(14)
	w.version("v1.36.3", works)
}

func brokenOld(w *rolled) { // DP-06, MS-10
	w.expect("made", "v1.36.1 4/4")
	w.turn("v1.36.1", 2, breaks)
	w.turn("v1.36.1", 3, breaks)
	w.settle()
	w.version("v1.36.2", works)
}

func names(w *rolled) []string {
	var out []string
	for _, m := range w.machines() {
		out = append(out, m.Name)
	}
	return out
}

func (s rolloutScenario) run(t *testing.T, rng *rand.Rand) *rolled {
	t.Helper()
	w := newRolled(t, rng, s.replicas, s.strategy)
	w.frail = s.frail
	s.play(w)
	w.expect(s.reason, s.want)
	if c := condition.Set(w.deployment().Status.Conditions).Get(clusterv1.MachineDeploymentRollingOutCondition); (c.Status == metav1.ConditionTrue) != s.rolls {
		t.Errorf("DP-12: rolling out is %s: %s\n%s", c.Status, c.Message, w.text())
	}
	return w
}

// TestRollouts plays rollouts under both controllers, in a fixed order, and in many random ones.
func TestRollouts(t *testing.T) { // DP-02, DP-05 to DP-11, DP-20, MS-03, MS-06, MS-08, MS-10, MS-11
	for name, s := range rolloutScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			fmt.Fprintf(&text, "# %s\n\n# fixed order\n%s", s.reason, s.run(t, nil).text())
			fmt.Fprintf(&text, "\n# random order, seed 1\n%s", s.run(t, rand.New(rand.NewPCG(1, 1))).text())
			testkit.CompareGolden(t, filepath.Join("testdata", "rollout-"+name+".golden"), text.String())
			for seed := range uint64(rolloutSeeds) {
				if s.run(t, rand.New(rand.NewPCG(7, seed))); t.Failed() {
					t.Fatalf("seed %d", seed)
				}
			}
		})
	}
}
