package lifecycle

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// vector is an upgrade from v1.29 to v1.33 in the order of its calls.
var vector = []string{
	"BeforeClusterUpgrade 29→33 CP[30,31,32,33] W[32,33]",
	"BeforeControlPlaneUpgrade 29→30 CP[30,31,32,33] W[32,33]",
	"AfterControlPlaneUpgrade 30 CP[31,32,33] W[32,33]",
	"BeforeControlPlaneUpgrade 30→31 CP[31,32,33] W[32,33]",
	"AfterControlPlaneUpgrade 31 CP[32,33] W[32,33]",
	"BeforeControlPlaneUpgrade 31→32 CP[32,33] W[32,33]",
	"AfterControlPlaneUpgrade 32 CP[33] W[32,33]",
	"BeforeWorkersUpgrade 29→32 CP[33] W[32,33]",
	"AfterWorkersUpgrade 32 CP[33] W[33]",
	"BeforeControlPlaneUpgrade 32→33 CP[33] W[33]",
	"AfterControlPlaneUpgrade 33 CP[] W[33]",
	"BeforeWorkersUpgrade 32→33 CP[] W[33]",
	"AfterWorkersUpgrade 33 CP[] W[]",
	"AfterClusterUpgrade 33",
}

func TestCallsOfAnUpgrade(t *testing.T) { // LH-18, LH-03 to LH-08, TP-22, TP-25, TP-26
	for name, tc := range map[string]struct {
		reason       string
		at, target   string
		workers      []string
		want         []string
		withoutHooks bool
	}{
		"chained": {"workers skip the minor versions that they can", "v1.29.0", "v1.33.0", []string{"v1.29.0", "v1.29.0"}, vector, false},
		"no workers": {"no hook of workers", "v1.32.0", "v1.33.0", nil, []string{
			"BeforeClusterUpgrade 32→33 CP[33] W[]", "BeforeControlPlaneUpgrade 32→33 CP[33] W[]",
			"AfterControlPlaneUpgrade 33 CP[] W[]", "AfterClusterUpgrade 33",
		}, false},
		"patch": {"the same with one step", "v1.33.0", "v1.33.4", []string{"v1.33.0"}, []string{
			"BeforeClusterUpgrade 33→33.4 CP[33.4] W[33.4]", "BeforeControlPlaneUpgrade 33→33.4 CP[33.4] W[33.4]",
			"AfterControlPlaneUpgrade 33.4 CP[] W[33.4]", "BeforeWorkersUpgrade 33→33.4 CP[] W[33.4]",
			"AfterWorkersUpgrade 33.4 CP[] W[]", "AfterClusterUpgrade 33.4",
		}, false},
		"gate off": {"without the Runtime SDK nothing is called and the order is the same", "v1.29.0", "v1.33.0", []string{"v1.29.0"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.at, tc.target, tc.workers...)
			w.facts = func(f *Input) {
				f.RuntimeSDK = !tc.withoutHooks
				f.Versions = append(f.Versions, "v1.33.4")
				if !strings.HasSuffix(tc.target, ".4") {
					f.Versions = minors(20, 40)
				}
			}
			w.done(w.run())
			if diff := cmp.Diff(tc.want, w.calls); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCrashes: the manager is killed before each write of the upgrade, and again soon after; calls and result are the same,
// except that the one call whose answer was lost may come twice.
func TestCrashes(t *testing.T) { // LH-11
	first := newWorld(t, "v1.29.0", "v1.33.0", "v1.29.0", "v1.29.0")
	first.run()
	total := first.writes
	if total < 20 {
		t.Fatalf("the upgrade has %d writes only", total)
	}
	for a := 1; a <= total+1; a++ {
		for b := a; b <= a+3; b++ {
			w := newWorld(t, "v1.29.0", "v1.33.0", "v1.29.0", "v1.29.0")
			w.crashIn = a
			var v Decision
			for range 1000 {
				var changed bool
				changed, v = w.reconcile()
				if w.writes >= w.crashIn && w.crashIn == a {
					w.crashIn = b
				}
				w.checkSkew(fmt.Sprintf("crashes %d, %d", a, b))
				if !changed && !w.progress(nil) {
					break
				}
			}
			w.done(v)
			// A repeated call follows the one it repeats: its answer was lost in the crash.
			if diff := cmp.Diff(vector, slices.Compact(slices.Clone(w.calls))); diff != "" {
				t.Fatalf("crashes before writes %d and %d (-want +got):\n%s", a, b, diff)
			}
			if repeated := len(w.calls) - len(vector); repeated > 2 {
				t.Fatalf("crashes before writes %d and %d: %d calls repeated", a, b, repeated)
			}
		}
	}
}

// TestCrashBetweenWrites: a crash after the first write of a reconciliation repeats no call.
func TestCrashBetweenWrites(t *testing.T) { // LH-11
	first := newWorld(t, "v1.29.0", "v1.33.0", "v1.29.0")
	first.run()
	for n := 2; n <= first.writes; n++ {
		w := newWorld(t, "v1.29.0", "v1.33.0", "v1.29.0")
		w.crashIn = n
		between := false
		var v Decision
		for range 1000 {
			before := w.writes
			var changed bool
			changed, v = w.reconcile()
			if before < n-1 && w.writes >= n {
				between = true // another write of the same reconciliation came before
			}
			if !changed && !w.progress(nil) {
				break
			}
		}
		w.done(v)
		if diff := cmp.Diff(vector, w.calls); between && diff != "" {
			t.Errorf("crash before write %d (-want +got):\n%s", n, diff)
		}
	}
}

// TestAnyOrder: whatever extensions answer, people defer and in whichever order machines are replaced, no version skew is violated,
// and the upgrade ends when all let go.
func TestAnyOrder(t *testing.T) { // TP-22, TP-24, TP-26, LH-11, LH-13
	for seed := range uint64(150) {
		random := rand.New(rand.NewPCG(seed, 24))
		at := 26 + random.IntN(4)
		w := newWorld(t, fmt.Sprintf("v1.%d.0", at), fmt.Sprintf("v1.%d.0", at+1+random.IntN(6)))
		for i := range random.IntN(4) {
			v := fmt.Sprintf("v1.%d.0", at-random.IntN(3))
			w.workers = append(w.workers, &simulated{kind: []string{"MachineDeployment", "MachinePool"}[random.IntN(2)], name: fmt.Sprint("w-", i), spec: v, machines: []string{v, v}})
		}
		slices.SortStableFunc(w.workers, func(a, b *simulated) int { return strings.Compare(a.kind, b.kind) })
		calm := false
		w.answer = func(q HookCall) HookResult {
			if calm {
				return HookResult{Handlers: []string{"h.x"}}
			}
			switch random.IntN(6) {
			case 0:
				return blocking(time.Second)
			case 1:
				return HookResult{Problem: errExtension}
			case 2:
				return HookResult{RetryAfter: time.Second}
			}
			return HookResult{Handlers: []string{"h.x"}}
		}
		var v Decision
		for turn := range 3000 {
			calm = turn > 500
			if !calm {
				w.disturb(random)
			} else {
				for _, s := range w.workers {
					s.annotations = nil
				}
				delete(w.cluster.Annotations, clusterv1.BeforeClusterUpgradeHookAnnotationPrefix+"/x")
			}
			w.crashIn = w.writes + 1 + random.IntN(3)
			if calm {
				w.crashIn = 0
			}
			var changed bool
			changed, v = w.reconcile()
			w.checkSkew(fmt.Sprintf("seed %d turn %d", seed, turn))
			moved := random.IntN(2) == 0 && w.progress(random)
			w.checkSkew(fmt.Sprintf("seed %d turn %d, machines", seed, turn))
			if calm && !changed && !moved && !w.progress(random) {
				break
			}
		}
		w.done(v)
		w.checkCalls(fmt.Sprintf("seed %d", seed))
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, w.calls)
		}
	}
}

// disturb changes what people and extensions may change while an upgrade is under way.
func (w *world) disturb(random *rand.Rand) {
	for _, s := range w.workers {
		switch random.IntN(12) {
		case 0:
			s.annotations = map[string]string{clusterv1.ClusterTopologyDeferUpgradeAnnotation: ""}
		case 1:
			s.annotations = map[string]string{clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation: ""}
		case 2, 3:
			s.annotations = nil
		}
	}
	hold := clusterv1.BeforeClusterUpgradeHookAnnotationPrefix + "/x"
	empty := ""
	switch random.IntN(10) {
	case 0:
		w.annotate(map[string]*string{hold: &empty})
	case 1, 2:
		w.annotate(map[string]*string{hold: nil})
	}
}

// checkCalls: every step of the control plane is framed by its hooks, in order, and every upgrade by those of the Cluster.
func (w *world) checkCalls(context string) {
	w.t.Helper()
	seen := map[string]bool{}
	last := ""
	for _, call := range w.calls {
		step := strings.Join(strings.Fields(call)[:2], " ")
		if seen[step] && last != step {
			w.t.Errorf("%s: %s comes again after %s", context, step, last)
		}
		seen[step], last = true, step
	}
	target := minor(w.cluster.Spec.Topology.Version)
	if !seen["AfterControlPlaneUpgrade "+target] || !seen["AfterClusterUpgrade "+target] || last != "AfterClusterUpgrade "+target {
		w.t.Errorf("%s: the hooks at the end were not called", context)
	}
}

// TestNoHandlers: without handlers nothing waits for a reconciliation of its own, and nothing pending is left.
func TestNoHandlers(t *testing.T) { // LH-10
	w := newWorld(t, "v1.29.0", "v1.33.0", "v1.29.0")
	w.answer = func(HookCall) HookResult { return HookResult{} }
	w.done(w.run())
	if diff := cmp.Diff(vector, w.calls); diff != "" {
		t.Errorf("questions (-want +got):\n%s", diff)
	}
}

// TestRecordedAndNotWritten: a control plane whose new version was recorded and not written gets it without a call.
func TestRecordedAndNotWritten(t *testing.T) { // LH-11, TP-27
	w := newWorld(t, "v1.30.0", "v1.32.0")
	w.cluster.Annotations = map[string]string{
		"runtime.cluster.x-k8s.io/pending-hooks":       "AfterClusterUpgrade,AfterControlPlaneUpgrade",
		clusterv1.ClusterTopologyUpgradeStepAnnotation: "v1.31.0",
	}
	_, v := w.decide()
	if v.ControlPlane.Version != "v1.31.0" || len(w.asked) > 0 || len(v.Annotations) > 0 {
		t.Errorf("version %s, asked %v, annotations %v", v.ControlPlane.Version, w.asked, v.Annotations)
	}
	w.facts = func(f *Input) { f.Versions = []string{"v1.31.5", "v1.32.0"} }
	_, v = w.decide()
	if v.ControlPlane.Version != "v1.31.5" || w.asked[BeforeControlPlaneUpgrade] != 1 || w.asked[AfterControlPlaneUpgrade] != 0 {
		t.Errorf("another plan: version %s, asked %v", v.ControlPlane.Version, w.asked)
	}
	w.facts = func(f *Input) { f.Versions = []string{"v1.31.5"} }
	_, v = w.decide()
	if v.ControlPlane.Version != "v1.30.0" || len(v.Annotations) > 0 || len(v.Failed) != 1 {
		t.Errorf("no plan: version %s, annotations %v, failed %v", v.ControlPlane.Version, v.Annotations, v.Failed)
	}
}
