package machine

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestSync(t *testing.T) {
	s := settled(func(s *snapshot) {
		s.Machine.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: "ms", Controller: ptr.To(true)}}
		s.Machine.Labels = map[string]string{
			"node-role.kubernetes.io/worker": "", "node-restriction.kubernetes.io/a": "1", "x.node-restriction.kubernetes.io/b": "2",
			"node.cluster.x-k8s.io/c": "3", "gpu.node.cluster.x-k8s.io/d": "4", "extra.example/e": "5",
			clusterv1.ClusterNameLabel: "c", "notnode.cluster.x-k8s.io/f": "6", "x.node-role.kubernetes.io/g": "7",
		}
		s.Machine.Annotations = map[string]string{"node.cluster.x-k8s.io/h": "8", "x.node.cluster.x-k8s.io/i": "9", "other/j": "10", "extra.example/k": "11"}
		s.Settings.SyncLabels = []*regexp.Regexp{regexp.MustCompile(`^extra\.example/`)}
		s.Settings.SyncAnnotations = []*regexp.Regexp{regexp.MustCompile(`^extra\.example/`)}
		s.Infra = infra(readyInfra[:len(readyInfra)-1] + ", interruptible: true}")
	})
	n := node()
	n.Labels = map[string]string{"kubernetes.io/hostname": "n", "node.cluster.x-k8s.io/old": "x", "node.cluster.x-k8s.io/foreign": "y"}
	n.Annotations = map[string]string{clusterv1.LabelsFromMachineAnnotation: "node.cluster.x-k8s.io/old,node.cluster.x-k8s.io/c",
		clusterv1.AnnotationsFromMachineAnnotation: "node.cluster.x-k8s.io/old", "node.cluster.x-k8s.io/old": "x", "foreign": "z"}
	foreign := corev1.Taint{Key: "mine", Effect: "NoSchedule"}
	n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint, foreign, clusterv1.NodeOutdatedRevisionTaint}
	metadataOf(s).Sync(n)

	labels := map[string]string{ // MA-11, MA-15
		"node-role.kubernetes.io/worker": "", "node-restriction.kubernetes.io/a": "1", "x.node-restriction.kubernetes.io/b": "2",
		"node.cluster.x-k8s.io/c": "3", "gpu.node.cluster.x-k8s.io/d": "4", "extra.example/e": "5",
		"cluster.x-k8s.io/interruptible": "", "kubernetes.io/hostname": "n", "node.cluster.x-k8s.io/foreign": "y",
	}
	if diff := cmp.Diff(labels, n.Labels); diff != "" {
		t.Errorf("MA-11: managed labels come, dropped ones go, foreign ones stay; MA-15: interruptible (-want +got):\n%s", diff)
	}
	annotations := map[string]string{ // MA-10, MA-12
		"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/cluster-namespace": "ns", "cluster.x-k8s.io/machine": "m",
		"cluster.x-k8s.io/owner-kind": "MachineSet", "cluster.x-k8s.io/owner-name": "ms",
		"cluster.x-k8s.io/labels-from-machine":      "extra.example/e,gpu.node.cluster.x-k8s.io/d,node-restriction.kubernetes.io/a,node-role.kubernetes.io/worker,node.cluster.x-k8s.io/c,x.node-restriction.kubernetes.io/b",
		"cluster.x-k8s.io/annotations-from-machine": "extra.example/k,node.cluster.x-k8s.io/h,x.node.cluster.x-k8s.io/i",
		"node.cluster.x-k8s.io/h":                   "8", "x.node.cluster.x-k8s.io/i": "9", "extra.example/k": "11", "foreign": "z",
	}
	if diff := cmp.Diff(annotations, n.Annotations); diff != "" {
		t.Errorf("MA-10, MA-12 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.Taint{foreign}, n.Spec.Taints); diff != "" {
		t.Errorf("MA-13: the uninitialized taint goes with the first sync; MA-14: not outdated (-want +got):\n%s", diff)
	}
	if !metadataOf(s).IsSynced(n) {
		t.Error("MA-18: a Node that was synced needs no patch")
	}
	for revision, want := range map[string]bool{"2": true, "1": false, "": false} { // that of the MachineSet is 1
		ofDeployment(func(d *clusterv1.MachineDeployment) { d.Annotations[clusterv1.RevisionAnnotation] = revision })(&s)
		if got := outdated(s); got != want {
			t.Errorf("MA-14: MachineDeployment of revision %q: outdated %t", revision, got)
		}
	}
	ofDeployment(func(d *clusterv1.MachineDeployment) { d.Annotations[clusterv1.RevisionAnnotation] = "2" })(&s)
	if metadataOf(s).IsSynced(n) {
		t.Error("MA-14: an outdated Machine has to be told apart")
	}
	metadataOf(s).Sync(n)
	if diff := cmp.Diff([]corev1.Taint{foreign, clusterv1.NodeOutdatedRevisionTaint}, n.Spec.Taints); diff != "" {
		t.Errorf("MA-14 (-want +got):\n%s", diff)
	}
}

func TestNodeMatters(t *testing.T) { // MA-09
	cases := map[string]struct {
		reason string
		change func(*corev1.Node)
		want   bool
	}{
		"heartbeat":  {"nothing that anybody looks at", func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(now) }, false},
		"not ready":  {"a condition changes", func(n *corev1.Node) { n.Status.Conditions[0].Status = "False" }, true},
		"label":      {"somebody took our label away", func(n *corev1.Node) { n.Labels = map[string]string{"a": "b"} }, true},
		"annotation": {"somebody took our annotation away", func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, true},
		"taint":      {"MA-13", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint} }, true},
		"volumes":    {"nobody waits for them", func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}} }, false},
		"cordoned": {"MD-12: a drain goes on, volumes are waited for", func(n *corev1.Node) {
			n.Spec.Unschedulable, n.Status.VolumesAttached = true, []corev1.AttachedVolume{{Name: "v"}}
		}, true},
		"provider ID": {"MA-08", func(n *corev1.Node) { n.Spec.ProviderID = "x://2" }, true},
		"version":     {"status.nodeInfo", func(n *corev1.Node) { n.Status.NodeInfo.KubeletVersion = "v1.37.0" }, true},
		"swap":        {"the same swap in another place in memory", func(n *corev1.Node) { n.Status.NodeInfo.Swap = &corev1.NodeSwapStatus{Capacity: ptr.To[int64](1)} }, false},
		"deleted":     {"going", func(n *corev1.Node) { n.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := node(), node()
			before.Status.NodeInfo.Swap = &corev1.NodeSwapStatus{Capacity: ptr.To[int64](1)}
			after.Status.NodeInfo.Swap = &corev1.NodeSwapStatus{Capacity: ptr.To[int64](1)}
			tc.change(after)
			if got := nodeMatters(before, after); got != tc.want {
				t.Errorf("%s: %v", tc.reason, got)
			}
		})
	}
}

func TestSyncTaints(t *testing.T) { // MA-16
	taint := func(key, value string, p clusterv1.MachineTaintPropagation) clusterv1.MachineTaint {
		return clusterv1.MachineTaint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule, Propagation: p}
	}
	on := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	const always, once = clusterv1.MachineTaintPropagationAlways, clusterv1.MachineTaintPropagationOnInitialization
	foreign := corev1.Taint{Key: "mine", Effect: corev1.TaintEffectNoExecute}
	cases := map[string]struct {
		reason  string
		machine []clusterv1.MachineTaint
		node    []corev1.Taint
		tracked *string
		want    []corev1.Taint
		tracks  string
	}{
		"none":            {"the Node counts as initialized", nil, []corev1.Taint{foreign}, nil, []corev1.Taint{foreign}, ""},
		"initialization":  {"both kinds come", []clusterv1.MachineTaint{taint("b", "1", always), taint("a", "2", once)}, []corev1.Taint{foreign}, nil, []corev1.Taint{foreign, on("b", "1"), on("a", "2")}, "b:NoSchedule"},
		"once only":       {"left alone from then on", []clusterv1.MachineTaint{taint("a", "", once)}, nil, ptr.To(""), nil, ""},
		"taken away":      {"Always comes back", []clusterv1.MachineTaint{taint("b", "1", always)}, nil, ptr.To("b:NoSchedule"), []corev1.Taint{on("b", "1")}, "b:NoSchedule"},
		"changed":         {"Always has the Machine's value", []clusterv1.MachineTaint{taint("b", "1", always)}, []corev1.Taint{on("b", "0"), foreign}, ptr.To("b:NoSchedule"), []corev1.Taint{on("b", "1"), foreign}, "b:NoSchedule"},
		"dropped":         {"what came from the Machine goes, and nothing else", nil, []corev1.Taint{on("b", "1"), on("a", ""), foreign}, ptr.To("b:NoSchedule"), []corev1.Taint{on("a", ""), foreign}, ""},
		"other effect":    {"key and effect tell taints apart", nil, []corev1.Taint{on("b", "1"), {Key: "b", Effect: corev1.TaintEffectNoExecute}}, ptr.To("b:NoSchedule"), []corev1.Taint{{Key: "b", Effect: corev1.TaintEffectNoExecute}}, ""},
		"becomes once":    {"left alone from then on", []clusterv1.MachineTaint{taint("b", "1", once)}, []corev1.Taint{on("b", "1")}, ptr.To("b:NoSchedule"), []corev1.Taint{on("b", "1")}, ""},
		"becomes always":  {"kept from then on", []clusterv1.MachineTaint{taint("b", "1", always)}, nil, ptr.To(""), []corev1.Taint{on("b", "1")}, "b:NoSchedule"},
		"several tracked": {"sorted", []clusterv1.MachineTaint{taint("c", "", always), taint("a", "", always)}, nil, ptr.To(""), []corev1.Taint{on("c", ""), on("a", "")}, "a:NoSchedule,c:NoSchedule"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := settled(func(s *snapshot) { s.Settings.TaintPropagation, s.Machine.Spec.Taints = true, tc.machine })
			n := node()
			metadataOf(settled()).Sync(n)
			n.Spec.Taints = tc.node
			if tc.tracked != nil {
				n.Annotations[clusterv1.TaintsFromMachineAnnotation] = *tc.tracked
			}
			metadataOf(s).Sync(n)
			if diff := cmp.Diff(tc.want, n.Spec.Taints, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got, ok := n.Annotations[clusterv1.TaintsFromMachineAnnotation]; !ok || got != tc.tracks {
				t.Errorf("%s: tracks %q, want %q", tc.reason, got, tc.tracks)
			}
			if !metadataOf(s).IsSynced(n) {
				t.Errorf("%s: MA-18: a second patch", tc.reason)
			}
		})
	}
	off := node()
	metadataOf(settled(func(s *snapshot) { s.Machine.Spec.Taints = []clusterv1.MachineTaint{taint("a", "", always)} })).Sync(off)
	if _, ok := off.Annotations[clusterv1.TaintsFromMachineAnnotation]; ok || len(off.Spec.Taints) > 0 {
		t.Errorf("the gate is off: %+v", off)
	}
}
