package drain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func pod(name string, changes ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PodSpec{NodeName: "n"}}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func ofDaemonSet(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: name, Controller: ptr.To(true)}}
	}
}

func goingSince(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(now.Add(-d))) }
}

func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }

func emptyDir(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
}

func node(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

// rule is a MachineDrainRule for Pods with the label app of this value.
func rule(name, app string, behavior clusterv1.MachineDrainRuleDrainBehavior, order *int32) clusterv1.MachineDrainRule {
	return clusterv1.MachineDrainRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.MachineDrainRuleSpec{
		Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: behavior, Order: order},
		Pods:  []clusterv1.MachineDrainRulePodSelector{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}},
	}}
}

func rules(t *testing.T, list ...clusterv1.MachineDrainRule) []Rule {
	t.Helper()
	out, err := RulesFor(list, &clusterv1.Machine{}, &clusterv1.Cluster{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outline is a plan as names.
type outline struct{ Evict, Going, Later, Awaited, AwaitedLater, Stay []string }

func outlineOf(p Plan) outline {
	list := func(pods []types.NamespacedName) []string {
		var out []string
		for _, p := range pods {
			out = append(out, p.Name)
		}
		return out
	}
	o := outline{Going: list(p.Terminating), Later: list(p.Later), Awaited: list(p.Awaited), AwaitedLater: list(p.AwaitedLater)}
	for _, t := range p.Evict {
		o.Evict = append(o.Evict, t.Pod.Name)
	}
	for _, p := range p.Stay {
		o.Stay = append(o.Stay, p.Name)
	}
	return o
}

func TestDecide(t *testing.T) {
	const drain, skip, wait = clusterv1.MachineDrainRuleDrainBehaviorDrain, clusterv1.MachineDrainRuleDrainBehaviorSkip,
		clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted
	app := func(name string) func(*corev1.Pod) { return labelled("app", name) }
	cases := map[string]struct {
		reason string
		view   View
		want   outline
	}{
		"nothing":   {"an empty Node is drained", View{}, outline{}},
		"plain":     {"MD-04: evicted, by name", View{Pods: []corev1.Pod{pod("b"), pod("a")}}, outline{Evict: []string{"a", "b"}}},
		"emptyDir":  {"MD-05: what is lost with the machine is no reason to keep it", View{Pods: []corev1.Pod{pod("a", emptyDir)}}, outline{Evict: []string{"a"}}},
		"finished":  {"MD-05: a finished Pod can go", View{Pods: []corev1.Pod{pod("a", phase("Succeeded"))}}, outline{Evict: []string{"a"}}},
		"going":     {"MD-04: not asked twice", View{Pods: []corev1.Pod{pod("a", goingSince(time.Minute))}}, outline{Going: []string{"a"}}},
		"daemonset": {"MD-05: it would come back", View{Pods: []corev1.Pod{pod("a", ofDaemonSet("d"))}}, outline{Stay: []string{"a"}}},
		"orphan": {"MD-05: its DaemonSet is gone", View{Pods: []corev1.Pod{pod("a", ofDaemonSet("d")), pod("b", ofDaemonSet("e"))},
			Orphans: map[types.NamespacedName]bool{{Namespace: "ns", Name: "d"}: true, {Namespace: "ns", Name: "e"}: false}}, outline{Evict: []string{"a"}, Stay: []string{"b"}}},
		"finished of daemonset": {"MD-05", View{Pods: []corev1.Pod{pod("a", ofDaemonSet("d"), phase("Failed"))}}, outline{Evict: []string{"a"}}},
		"mirror":                {"MD-05: kubelet runs it", View{Pods: []corev1.Pod{pod("a", mirror)}}, outline{Stay: []string{"a"}}},
		"label skip":            {"MD-05", View{Pods: []corev1.Pod{pod("a", labelled(clusterv1.PodDrainLabel, "Skip"))}}, outline{Stay: []string{"a"}}},
		"label unknown":         {"MD-05: says nothing", View{Pods: []corev1.Pod{pod("a", labelled(clusterv1.PodDrainLabel, "never"))}}, outline{Evict: []string{"a"}}},
		"label wait": {"MD-06: however it is written", View{Pods: []corev1.Pod{
			pod("a", labelled(clusterv1.PodDrainLabel, "wait-completed")), pod("b", labelled(clusterv1.PodDrainLabel, "WaitCompleted")), pod("c", labelled(clusterv1.PodDrainLabel, "WAIT-Completed")),
		}}, outline{Awaited: []string{"a", "b", "c"}}},
		"completed":  {"MD-06: never evicted, also when it has completed", View{Pods: []corev1.Pod{pod("a", labelled(clusterv1.PodDrainLabel, "wait-completed"), phase("Succeeded"))}}, outline{Stay: []string{"a"}}},
		"rule skip":  {"MD-05", View{Pods: []corev1.Pod{pod("a", app("x")), pod("b")}, Rules: rules(t, rule("r", "x", skip, nil))}, outline{Evict: []string{"b"}, Stay: []string{"a"}}},
		"rule wait":  {"MD-06: order 0", View{Pods: []corev1.Pod{pod("a", app("x")), pod("b")}, Rules: rules(t, rule("r", "x", wait, nil))}, outline{Evict: []string{"b"}, Awaited: []string{"a"}}},
		"first rule": {"MD-07: by name, the first that matches", View{Pods: []corev1.Pod{pod("a", app("x"))}, Rules: rules(t, rule("b", "x", skip, nil), rule("a", "x", drain, nil))}, outline{Evict: []string{"a"}}},
		"label before rule": {"MD-07", View{Pods: []corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Labels = map[string]string{"app": "x", clusterv1.PodDrainLabel: "skip"}
		})}, Rules: rules(t, rule("a", "x", drain, nil))}, outline{Stay: []string{"a"}}},
		"order": {"MD-08: the lowest that is there", View{Pods: []corev1.Pod{pod("late", app("x")), pod("early", app("y")), pod("mid")},
			Rules: rules(t, rule("x", "x", drain, ptr.To[int32](5)), rule("y", "y", drain, ptr.To[int32](-5)))}, outline{Evict: []string{"early"}, Later: []string{"late", "mid"}}},
		"order waits for the going": {"MD-08: until the former is gone", View{Pods: []corev1.Pod{pod("late", app("x")), pod("early", goingSince(0))},
			Rules: rules(t, rule("x", "x", drain, ptr.To[int32](5)))}, outline{Going: []string{"early"}, Later: []string{"late"}}},
		"order waits for the awaited": {"MD-06, MD-08: order 0 holds up higher ones", View{Pods: []corev1.Pod{pod("late", app("x")), pod("job", app("y"))},
			Rules: rules(t, rule("x", "x", drain, ptr.To[int32](1)), rule("y", "y", wait, nil))}, outline{Awaited: []string{"job"}, Later: []string{"late"}}},
		"awaited later": {"MD-06, MD-08: and is held up by lower ones", View{Pods: []corev1.Pod{pod("early", app("x")), pod("job", app("y"))},
			Rules: rules(t, rule("x", "x", drain, ptr.To[int32](-1)), rule("y", "y", wait, nil))}, outline{Evict: []string{"early"}, AwaitedLater: []string{"job"}}},
		"those that stay hold up nobody": {"MD-08", View{Pods: []corev1.Pod{pod("late", app("x")), pod("ds", ofDaemonSet("d"))},
			Rules: rules(t, rule("x", "x", drain, ptr.To[int32](1)))}, outline{Evict: []string{"late"}, Stay: []string{"ds"}}},
		"unreachable": {"MD-05: nobody will confirm an old deletion", View{Node: node(corev1.ConditionUnknown), Pods: []corev1.Pod{pod("a"), pod("fresh", goingSince(time.Second)), pod("old", goingSince(2*time.Second))}},
			outline{Evict: []string{"a"}, Going: []string{"fresh"}, Stay: []string{"old"}}},
		"removed": {"MD-05: the end of a Pod that ran on a machine which was removed is not confirmed", View{Removed: true, Pods: []corev1.Pod{
			pod("a"), pod("fresh", goingSince(-30*time.Second)), pod("job", labelled(clusterv1.PodDrainLabel, "wait-completed")), pod("ds", ofDaemonSet("d"))}},
			outline{Evict: []string{"a"}, Stay: []string{"ds", "fresh", "job"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.view.Now = now
			if tc.view.Node == nil {
				tc.view.Node = node(corev1.ConditionTrue)
			}
			got := Decide(tc.view)
			if diff := cmp.Diff(tc.want, outlineOf(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			left := len(tc.want.Evict) + len(tc.want.Going) + len(tc.want.Later) + len(tc.want.Awaited) + len(tc.want.AwaitedLater)
			if got.Done() != (left == 0) {
				t.Errorf("%s: done %v with %d left", tc.reason, got.Done(), left)
			}
		})
	}
}

func TestGracePeriod(t *testing.T) { // MD-05
	for ready, want := range map[corev1.ConditionStatus]*int64{corev1.ConditionTrue: nil, corev1.ConditionFalse: nil, corev1.ConditionUnknown: ptr.To(int64(1))} {
		got := Decide(View{Now: now, Node: node(ready), Pods: []corev1.Pod{pod("a")}}).Evict[0]
		if diff := cmp.Diff(Target{Pod: types.NamespacedName{Namespace: "ns", Name: "a"}, UID: "uid-a", GraceSeconds: want}, got); diff != "" {
			t.Errorf("Node ready %s (-want +got):\n%s", ready, diff)
		}
	}
	removed := Decide(View{Now: now, Removed: true, Node: node(corev1.ConditionTrue), Pods: []corev1.Pod{pod("a")}}).Evict[0]
	if diff := cmp.Diff(ptr.To(int64(1)), removed.GraceSeconds); diff != "" {
		t.Errorf("machine removed (-want +got):\n%s", diff)
	}
}

func TestRulesFor(t *testing.T) { // MD-07
	is := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"os": "linux"}}}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"stage": "production"}}}
	type m = clusterv1.MachineDrainRuleMachineSelector
	cases := map[string]struct {
		reason   string
		machines []m
		want     bool
	}{
		"none":            {"all Machines", nil, true},
		"machine":         {"by its labels", []m{{Selector: is("os", "linux")}}, true},
		"other machine":   {"by its labels", []m{{Selector: is("os", "other")}}, false},
		"cluster":         {"by the Cluster's labels", []m{{ClusterSelector: is("stage", "production")}}, true},
		"both":            {"both have to match", []m{{Selector: is("os", "linux"), ClusterSelector: is("stage", "production")}}, true},
		"one of both":     {"both have to match", []m{{Selector: is("os", "linux"), ClusterSelector: is("stage", "test")}}, false},
		"alternatives":    {"one of them is enough", []m{{Selector: is("os", "other")}, {ClusterSelector: is("stage", "production")}}, true},
		"empty selectors": {"select all", []m{{Selector: &metav1.LabelSelector{}, ClusterSelector: &metav1.LabelSelector{}}}, true},
	}
	for name, tc := range cases {
		got, err := RulesFor([]clusterv1.MachineDrainRule{{Spec: clusterv1.MachineDrainRuleSpec{Machines: tc.machines}}}, machine, cluster)
		if err != nil || (len(got) == 1) != tc.want {
			t.Errorf("%s: %s: got %v, %v", name, tc.reason, got, err)
		}
	}
	bad := []m{{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}}
	if _, err := RulesFor([]clusterv1.MachineDrainRule{{Spec: clusterv1.MachineDrainRuleSpec{Machines: bad}}}, machine, cluster); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a selector that cannot be read: %v", err)
	}
}

func TestPodSelectors(t *testing.T) { // MD-07
	is := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	type p = clusterv1.MachineDrainRulePodSelector
	a := pod("a", labelled("app", "x"))
	namespaces := map[string]labels.Set{"ns": {"team": "red"}}
	cases := map[string]struct {
		reason string
		pods   []p
		want   bool
	}{
		"none":         {"all Pods", nil, true},
		"labels":       {"in all Namespaces", []p{{Selector: is("app", "x")}}, true},
		"other labels": {"not this one", []p{{Selector: is("app", "y")}}, false},
		"namespace":    {"all its Pods", []p{{NamespaceSelector: is("team", "red")}}, true},
		"both":         {"both have to match", []p{{Selector: is("app", "x"), NamespaceSelector: is("team", "blue")}}, false},
		"alternatives": {"one is enough", []p{{Selector: is("app", "y")}, {NamespaceSelector: is("team", "red")}}, true},
	}
	for name, tc := range cases {
		compiled := rules(t, clusterv1.MachineDrainRule{Spec: clusterv1.MachineDrainRuleSpec{Pods: tc.pods}})
		if got := compiled[0].selects(&a, namespaces); got != tc.want {
			t.Errorf("%s: %s: %v", name, tc.reason, got)
		}
	}
}

// teamRule leaves the Pods of the Namespaces of a team alone.
func teamRule() clusterv1.MachineDrainRule {
	r := rule("team", "", clusterv1.MachineDrainRuleDrainBehaviorSkip, nil)
	r.Spec.Pods = []clusterv1.MachineDrainRulePodSelector{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}}}
	return r
}
