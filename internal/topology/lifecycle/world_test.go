package lifecycle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/version"
)

// world is a management cluster with one Cluster, in memory. A reconciliation decides and then writes, one object after the
// other; it can be made to crash before any write.
type world struct {
	t       testing.TB
	cluster *clusterv1.Cluster
	cp      *simulated
	workers []*simulated
	facts   func(*Input)
	// answer plays the extensions; nil: every hook has one handler, which lets go.
	answer func(HookCall) HookResult
	// calls are the hooks that let go, in order, with the versions that they were told.
	calls []string
	// asked counts all calls.
	asked map[Hook]int
	// crashIn is the write before which the manager crashes; 0: it does not.
	crashIn, writes int
}

// simulated is a control plane or worker: the version of its spec, and that of each of its machines.
type simulated struct {
	kind, name, spec string
	machines         []string
	annotations      map[string]string
}

func (s *simulated) upgrading() bool {
	return slices.ContainsFunc(s.machines, func(v string) bool { return v != s.spec })
}

// progress replaces one machine.
func (s *simulated) progress() {
	for i, v := range s.machines {
		if v != s.spec {
			s.machines[i] = s.spec
			return
		}
	}
}

func (s *simulated) oldest() string {
	oldest, _ := version.Parse(s.machines[0])
	for _, text := range s.machines {
		if v, _ := version.Parse(text); v.Compare(oldest) < 0 {
			oldest = v
		}
	}
	return oldest.String()
}

func newWorld(t testing.TB, at, target string, workers ...string) *world {
	w := &world{t: t, cluster: &clusterv1.Cluster{}, asked: map[Hook]int{}}
	w.cluster.Name = "c"
	w.cluster.Spec.Topology.Version = target
	w.cluster.Spec.Topology.ClassRef.Name = "class"
	w.cluster.Spec.ControlPlaneRef.Name, w.cluster.Spec.InfrastructureRef.Name = "cp", "infra"
	w.cp = &simulated{kind: "HostedControlPlane", name: "cp", spec: at, machines: []string{at, at, at}}
	for i, v := range workers {
		w.workers = append(w.workers, &simulated{kind: "MachineDeployment", name: fmt.Sprintf("md-%d", i), spec: v, machines: []string{v, v}})
	}
	return w
}

// minors lists v1.X.0 from one minor version to another.
func minors(from, to int) []string {
	var out []string
	for m := from; m <= to; m++ {
		out = append(out, fmt.Sprintf("v1.%d.0", m))
	}
	return out
}

func (w *world) snapshot() Input {
	f := Input{Cluster: w.cluster.DeepCopy(), Class: "class", Versions: minors(20, 40), RuntimeSDK: true, Results: map[Hook]HookResult{}}
	if w.cp != nil {
		f.ControlPlane = &ControlPlane{Kind: w.cp.kind, Name: w.cp.name, Version: w.cp.spec, Running: w.cp.oldest()}
	}
	for _, s := range w.workers {
		f.Workers = append(f.Workers, Worker{Kind: s.kind, Topology: s.name, Name: s.name, Exists: true, Version: s.spec, Upgrading: s.upgrading(), Annotations: s.annotations})
	}
	if w.facts != nil {
		w.facts(&f)
	}
	return f
}

// short writes a plan as minor versions.
func short(versions []string) string {
	out := make([]string, 0, len(versions))
	for _, v := range versions {
		out = append(out, minor(v))
	}
	return "[" + strings.Join(out, ",") + "]"
}

func minor(v string) string { return strings.TrimSuffix(strings.TrimPrefix(v, "v1."), ".0") }

func (w *world) call(q HookCall) HookResult {
	w.asked[q.Hook]++
	a := HookResult{Handlers: []string{"h.x"}}
	if w.answer != nil {
		a = w.answer(q)
	}
	if a.Problem == nil && a.RetryAfter == 0 && len(a.Blocking) == 0 {
		text := string(q.Hook)
		switch {
		case q.From != "":
			text += fmt.Sprintf(" %s→%s CP%s W%s", minor(q.From), minor(q.To), short(q.Rest.ControlPlane), short(q.Rest.Workers))
		case q.Hook == AfterClusterUpgrade:
			text += " " + minor(q.To)
		default:
			text += fmt.Sprintf(" %s CP%s W%s", minor(q.To), short(q.Rest.ControlPlane), short(q.Rest.Workers))
		}
		w.calls = append(w.calls, text)
	}
	return a
}

// crash is the end of a manager.
type crash struct{}

// write makes one change, unless the manager crashes before it.
func (w *world) write(change func()) {
	w.writes++
	if w.writes == w.crashIn {
		panic(crash{})
	}
	change()
}

// decide asks until there is nothing to ask, as the driver does.
func (w *world) decide() (Input, Decision) {
	f := w.snapshot()
	for range 5 {
		v := Next(f)
		if len(v.Calls) == 0 {
			return f, v
		}
		for _, q := range v.Calls {
			f.Results[q.Hook] = w.call(q)
		}
	}
	w.t.Fatal("asked more than five times in one reconciliation")
	return f, Decision{}
}

// reconcile decides and writes. It reports whether anything changed, and the verdict.
func (w *world) reconcile() (changed bool, v Decision) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(crash); !ok {
				panic(p)
			}
			changed = true
		}
	}()
	_, v = w.decide()
	if len(v.Annotations) > 0 {
		changed = true
		w.write(func() { w.annotate(v.Annotations) })
	}
	if v.Suspended {
		return changed, v
	}
	if w.cp != nil && v.ControlPlane.Version != w.cp.spec {
		changed = true
		w.write(func() { w.cp.spec = v.ControlPlane.Version })
	}
	for i, s := range w.workers {
		if v.Workers[i].Version != s.spec {
			changed = true
			w.write(func() { s.spec = v.Workers[i].Version })
		}
	}
	return changed, v
}

func (w *world) annotate(annotations map[string]*string) {
	if w.cluster.Annotations == nil {
		w.cluster.Annotations = map[string]string{}
	}
	for key, value := range annotations {
		if value == nil {
			delete(w.cluster.Annotations, key)
		} else {
			w.cluster.Annotations[key] = *value
		}
	}
}

// progress replaces one machine somewhere; false: all run what they should.
func (w *world) progress(random *rand.Rand) bool {
	var moving []*simulated
	for _, s := range append([]*simulated{w.cp}, w.workers...) {
		if s.upgrading() {
			moving = append(moving, s)
		}
	}
	if len(moving) == 0 {
		return false
	}
	pick := 0
	if random != nil {
		pick = random.IntN(len(moving))
	}
	moving[pick].progress()
	return true
}

// checkSkew: no kubelet is newer than the API servers, or too old for them, nor the spec of one that could be created.
func (w *world) checkSkew(context string) {
	w.t.Helper()
	span := version.Span{}
	for i, text := range append([]string{w.cp.spec}, w.cp.machines...) {
		v, _ := version.Parse(text)
		if i == 0 {
			span = version.Span{Lowest: v, Highest: v}
		}
		span = span.Include(v)
	}
	if span.Highest.Minor > span.Lowest.Minor+1 {
		w.t.Fatalf("%s: API servers of %s and %s at once", context, span.Lowest, span.Highest)
	}
	for _, s := range w.workers {
		for _, text := range append([]string{s.spec}, s.machines...) {
			v, _ := version.Parse(text)
			if span.IsOlderThan(v) || span.IsTooNewFor(v) {
				w.t.Fatalf("%s: kubelet %s of %s beside API servers %s to %s", context, v, s.name, span.Lowest, span.Highest)
			}
		}
	}
}

// run reconciles and lets machines be replaced until nothing happens any more.
func (w *world) run() Decision {
	w.t.Helper()
	for range 1000 {
		changed, v := w.reconcile()
		w.checkSkew("after a reconciliation")
		if !changed && !w.progress(nil) {
			return v
		}
		w.checkSkew("after a machine was replaced")
	}
	w.t.Fatal("the world does not come to rest")
	return Decision{}
}

// done checks that the upgrade is over without a trace.
func (w *world) done(v Decision) {
	w.t.Helper()
	for _, s := range append([]*simulated{w.cp}, w.workers...) {
		if s.spec != w.cluster.Spec.Topology.Version || s.upgrading() {
			w.t.Errorf("%s has %s, machines %v", s.name, s.spec, s.machines)
		}
	}
	if len(w.cluster.Annotations) > 0 {
		w.t.Errorf("annotations are left: %v", w.cluster.Annotations)
	}
	if v.Reason != clusterv1.ClusterTopologyReconcileSucceededReason || v.Message != "" {
		w.t.Errorf("condition %s: %s", v.Reason, v.Message)
	}
}

func blocking(after time.Duration) HookResult {
	return HookResult{Handlers: []string{"h.x"}, Blocking: []Blocker{{Handler: "h.x", Message: "not yet", RetryAfter: after}}}
}

var errExtension = errors.New("handler h.x: responded with status Failure: no")

func initializedCondition() metav1.Condition {
	return metav1.Condition{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue}
}
