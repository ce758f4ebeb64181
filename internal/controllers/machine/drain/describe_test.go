package drain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func name(n string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: n} }

func TestDescribe(t *testing.T) { // MD-10, MD-11
	var many []types.NamespacedName
	for i := range 7 {
		many = append(many, name(fmt.Sprintf("p%d", 6-i)))
	}
	p := Plan{Terminating: many, Later: []types.NamespacedName{name("l")}, Awaited: []types.NamespacedName{name("w")}, AwaitedLater: []types.NamespacedName{name("v")}}
	r := Results{
		Accepted: []types.NamespacedName{name("a")}, Left: []types.NamespacedName{name("x")},
		Refused: []Refusal{{name("d"), budgeted, "a budget"}, {name("c"), budgeted, "a budget"}, {name("e"), terminating, "a Namespace"}},
	}
	want := strings.Join([]string{
		"* Terminating Pods: ns/a, ns/p0, ns/p1, ns/p2, ns/p3 and 3 more",
		"* Pods that cannot be evicted, a Namespace: ns/e",
		"* Pods that cannot be evicted, a budget: ns/c, ns/d",
		"* Pods to complete by themselves: ns/w",
		"* Pods still to be evicted: ns/x",
		"* Pods to be evicted after Pods of a lower order: ns/l",
		"* Pods to complete by themselves after Pods of a lower order: ns/v",
	}, "\n")
	if diff := cmp.Diff(want, strings.Join(Describe(p, r), "\n")); diff != "" {
		t.Errorf("a line for each reason, names sorted, five of them (-want +got):\n%s", diff)
	}
	if got := Describe(Plan{}, Results{}); len(got) != 0 {
		t.Errorf("nothing to say: %v", got)
	}
}

func TestDelays(t *testing.T) { // MA-22
	cases := map[string]struct {
		p    Plan
		r    Results
		want []string
	}{
		"nothing":     {Plan{}, Results{}, nil},
		"budget":      {Plan{}, Results{Refused: []Refusal{{Reason: budgeted}}}, []string{"PodDisruptionBudgets"}},
		"going":       {Plan{Terminating: []types.NamespacedName{name("a")}}, Results{}, []string{"Pods that do not terminate"}},
		"terminating": {Plan{}, Results{Refused: []Refusal{{Reason: terminating}}}, []string{"Pods that do not terminate"}},
		"failed":      {Plan{}, Results{Refused: []Refusal{{Reason: failed}}}, []string{"evictions that fail"}},
		"busy":        {Plan{}, Results{Refused: []Refusal{{Reason: busy}}}, nil},
		"awaited":     {Plan{AwaitedLater: []types.NamespacedName{name("a")}}, Results{}, []string{"Pods that do not complete"}},
	}
	for n, tc := range cases {
		if diff := cmp.Diff(tc.want, Delays(tc.p, tc.r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", n, diff)
		}
	}
}

func csi(volume, handle, claim string) corev1.PersistentVolume {
	pv := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: handle}
	if claim != "" {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: claim}
	}
	return pv
}

func attachment(name string, volume *string) storagev1.VolumeAttachment {
	return storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "d", NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: volume}}}
}

func TestAttached(t *testing.T) { // MD-12
	reported := func(names ...string) *corev1.Node {
		n := node(corev1.ConditionTrue)
		for _, name := range names {
			n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName(name)})
		}
		return n
	}
	stays := pod("ds", func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "kept"}}},
			{Name: "e", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		}
	})
	volumes := []corev1.PersistentVolume{csi("a", "ha", "c"), csi("b", "hb", "kept"), csi("e", "he", "ds-e"), csi("u", "hu", "")}
	cases := map[string]struct {
		reason string
		v      Volumes
		want   []string
	}{
		"none":            {"nothing to wait for", Volumes{Node: reported()}, nil},
		"reported":        {"by the Node", Volumes{Node: reported("kubernetes.io/csi/d^ha")}, []string{"a"}},
		"attachment":      {"by a VolumeAttachment", Volumes{Node: reported(), Attachments: []storagev1.VolumeAttachment{attachment("x", ptr.To("u"))}}, []string{"u (VolumeAttachment x of CSI driver d)"}},
		"both":            {"one volume, said once", Volumes{Node: reported("kubernetes.io/csi/d^ha"), Attachments: []storagev1.VolumeAttachment{attachment("x", ptr.To("a"))}}, []string{"a (VolumeAttachment x of CSI driver d)"}},
		"kept":            {"of a Pod that stays", Volumes{Node: reported("kubernetes.io/csi/d^hb"), Attachments: []storagev1.VolumeAttachment{attachment("x", ptr.To("b"))}}, nil},
		"kept, ephemeral": {"the claim is named after Pod and volume", Volumes{Node: reported("kubernetes.io/csi/d^he")}, nil},
		"unknown":         {"no PersistentVolume of this program's", Volumes{Node: reported("kubernetes.io/other/x")}, []string{"kubernetes.io/other/x"}},
		"gone":            {"its PersistentVolume does not exist any more", Volumes{Node: reported(), Attachments: []storagev1.VolumeAttachment{attachment("x", ptr.To("z"))}}, []string{"z (VolumeAttachment x of CSI driver d)"}},
		"inline":          {"has no PersistentVolume", Volumes{Node: reported(), Attachments: []storagev1.VolumeAttachment{attachment("x", nil)}}, []string{"x (VolumeAttachment x of CSI driver d)"}},
	}
	for n, tc := range cases {
		tc.v.PersistentVolumes = volumes
		if diff := cmp.Diff(tc.want, tc.v.Attached([]*corev1.Pod{&stays})); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", n, tc.reason, diff)
		}
		if tc.v.None() != (n == "none") {
			t.Errorf("%s: none is %v", n, tc.v.None())
		}
	}
}
