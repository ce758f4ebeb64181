package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// whole is a MachineSet that has all it needs, and a status.
func whole(change func(*Input)) Input {
	f := Input{
		Kind: "MachineSet", Name: "ms", Cluster: "c", ClusterExists: true, Observed: true,
		Parent: "MachineDeployment md", Owned: true,
		Children: []Child{{Kind: "Machine", Name: "a", Selected: true, Controller: ThisController}},
	}
	change(&f)
	return f
}

// bare is the same MachineSet without a status, its workload cluster seen.
func bare(change func(*Input)) Input {
	return whole(func(f *Input) {
		f.Observed, f.Workload.NodesRead = false, true
		change(f)
	})
}

func TestJudge(t *testing.T) { // OR-01
	orphan := Child{Kind: "Machine", Name: "b", Selected: true}
	cases := map[string]struct {
		reason string
		facts  Input
		adopt  []string
		want   string
	}{
		"whole": {"nothing is in the way", whole(func(*Input) {}), nil, ""},
		"no cluster": {"what belongs to it may not be there yet either",
			whole(func(f *Input) { f.ClusterExists = false }), nil, ReasonClusterMissing},
		"no parent": {"the label survives a backup, the owner reference does not",
			whole(func(f *Input) { f.Owned = false }), nil, reasonParentMissing},
		"standalone": {"nobody is named that could adopt it",
			whole(func(f *Input) { f.Parent, f.Owned = "", false }), nil, ""},
		"orphans": {"they are ours, and count once they are",
			whole(func(f *Input) {
				f.Children = append(f.Children, Child{Kind: "Machine", Name: "c", Selected: true}, orphan)
			}), []string{"b", "c"}, ReasonAdopting},
		"orphan without parent": {"a MachineSet that is not part of the graph adopts nothing",
			whole(func(f *Input) { f.Owned, f.Children = false, []Child{orphan} }), nil, reasonParentMissing},
		"orphan being deleted": {"is never adopted, and does not hold others up",
			whole(func(f *Input) { f.Children[0] = Child{Kind: "Machine", Name: "b", Selected: true, Deleting: true} }), nil, ""},
		"labelled but not selected": {"it says that it is ours, and adopting it would be wrong",
			whole(func(f *Input) { f.Children[0] = Child{Kind: "Machine", Name: "b"} }), nil, ReasonConflictingChild},
		"somebody else's": {"two owners claim it",
			whole(func(f *Input) {
				f.Children[0] = Child{Kind: "Machine", Name: "b", Selected: true, Controller: otherController}
			}), nil, ReasonConflictingChild},
		"hidden": {"PA-02: a label was forgotten or taken away; another Machine in its place would be one too many",
			whole(func(f *Input) { f.Hidden = []string{"Machine b"} }), nil, ReasonHidden},
		"child not restored": {"its Machines came first",
			whole(func(f *Input) { f.MissingChildren = []string{"MachineSet x"} }), nil, ReasonChildMissing},
		"new": {"no status, and the workload cluster knows nothing of it", bare(func(*Input) {}), nil, ""},
		"no status, not seen": {"it may be a restored one",
			bare(func(f *Input) { f.Workload = Workload{Problem: "not connected"} }), nil, ReasonWorkloadUnknown},
		"no status, strays": {"it is a restored one, its Machines are not back yet",
			bare(func(f *Input) { f.Workload.OrphanedNodes = []string{"n"} }), nil, reasonMachineMissing},
		"status, not seen": {"a workload cluster that is down does not stop what was known before",
			whole(func(f *Input) { f.Workload = Workload{} }), nil, ""},
		"status, strays": {"a Node that was left behind is no reason to stop",
			whole(func(f *Input) { f.Workload = Workload{NodesRead: true, OrphanedNodes: []string{"n"}} }), nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.facts)
			if got.Reason != tc.want || !cmp.Equal(got.Adopt, tc.adopt) {
				t.Errorf("got %+v, want adopt %v, reason %q: %s", got, tc.adopt, tc.want, tc.reason)
			}
			if len(got.On) == 0 != got.IsComplete() || got.NeedsUser && got.Field != "" {
				t.Errorf("a wait names objects, and a field or a person: %+v", got)
			}
			if got.IsComplete() != (tc.want == "") || (got.Message == "") != got.IsComplete() {
				t.Errorf("whole %t with reason %q and message %q", got.IsComplete(), got.Reason, got.Message)
			}
		})
	}
}

func TestStrays(t *testing.T) {
	node := func(name string, changes map[string]string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: "m-" + name,
			clusterv1.OwnerKindAnnotation: "MachineSet", clusterv1.OwnerNameAnnotation: "ms",
		}}}
		for key, value := range changes {
			n.Annotations[key] = value
		}
		return n
	}
	nodes := []corev1.Node{
		node("z", nil), node("a", nil), node("known", nil), {ObjectMeta: metav1.ObjectMeta{Name: "bare"}},
		node("other-set", map[string]string{clusterv1.OwnerNameAnnotation: "other"}),
		node("pool", map[string]string{clusterv1.OwnerKindAnnotation: "MachinePool"}),
		node("other-cluster", map[string]string{clusterv1.ClusterNameAnnotation: "d"}),
		node("other-namespace", map[string]string{clusterv1.ClusterNamespaceAnnotation: "d"}),
	}
	got := OrphanedNodes(types.NamespacedName{Namespace: "ns", Name: "c"}, nodes,
		func(set string) bool { return set == "ms" }, func(machine string) bool { return machine == "m-known" })
	if want := []string{"a", "z"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestControllerOf(t *testing.T) {
	yes := true
	ref := func(uid types.UID, controller *bool) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: uid, Controller: controller}}}}
	}
	for name, tc := range map[string]struct {
		o    metav1.Object
		want Controller
	}{
		"none": {&corev1.Node{}, NoController}, "owner only": {ref("u", nil), NoController}, "self": {ref("u", &yes), ThisController}, "other": {ref("v", &yes), otherController},
	} {
		if got := ControllerOf(tc.o, "u"); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestControllerOfChild(t *testing.T) { // MS-03
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ms", UID: "ms"}}
	owned := func(kind, name, uid string) *clusterv1.Machine {
		yes := true
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(uid), Controller: &yes}}}}
	}
	for name, tc := range map[string]struct {
		m    *clusterv1.Machine
		want Controller
	}{
		"nobody":          {&clusterv1.Machine{}, NoController},
		"its former self": {owned("MachineSet", "ms", "other"), NoController},
		"itself":          {owned("MachineSet", "ms", "ms"), ThisController},
		"another set":     {owned("MachineSet", "ms2", "other"), otherController},
		"a control plane": {owned("FooPlane", "ms", "other"), otherController},
	} {
		if got := ControllerOfChild(tc.m, "MachineSet", set); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
