package inplace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

func setOf(name, owner string, annotations map[string]string) *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid"), Annotations: annotations}}
	set.Spec.ClusterName = "c"
	if owner != "" {
		set.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineDeployment", Name: owner, UID: types.UID(owner), Controller: new(true)}}
	}
	return set
}

func TestMoveProblem(t *testing.T) { // IP-03
	const to, from = clusterv1.MachineSetMoveMachinesToMachineSetAnnotation, clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation
	receiving := map[string]string{from: "x, a ,b"}
	now := metav1.NewTime(time.Unix(1, 0))
	for name, tc := range map[string]struct {
		change  func(a, b *clusterv1.MachineSet)
		nothing bool
		want    string
	}{
		"both say so":        {change: func(_, _ *clusterv1.MachineSet) {}},
		"gone":               {nothing: true, want: "MachineSet b does not exist"},
		"other deployment":   {change: func(_, b *clusterv1.MachineSet) { b.OwnerReferences[0].UID = "other" }, want: "MachineSet b is not of the same MachineDeployment"},
		"standalone":         {change: func(_, b *clusterv1.MachineSet) { b.OwnerReferences = nil }, want: "MachineSet b is not of the same MachineDeployment"},
		"both standalone":    {change: func(a, b *clusterv1.MachineSet) { a.OwnerReferences, b.OwnerReferences = nil, nil }, want: "MachineSet b is not of the same MachineDeployment"},
		"owner, not control": {change: func(_, b *clusterv1.MachineSet) { b.OwnerReferences[0].Controller = nil }, want: "MachineSet b is not of the same MachineDeployment"},
		"other Cluster":      {change: func(_, b *clusterv1.MachineSet) { b.Spec.ClusterName = "other" }, want: "MachineSet b is not of the same MachineDeployment"},
		"other namespace":    {change: func(_, b *clusterv1.MachineSet) { b.Namespace = "other" }, want: "MachineSet b is not of the same MachineDeployment"},
		"deleted":            {change: func(_, b *clusterv1.MachineSet) { b.DeletionTimestamp = &now }, want: "MachineSet b is being deleted"},
		"itself":             {change: func(a, b *clusterv1.MachineSet) { b.UID = a.UID }, want: "it is the MachineSet itself"},
		"one side":           {change: func(_, b *clusterv1.MachineSet) { b.Annotations = nil }, want: "MachineSet b does not receive Machines from it"},
		"part of a name":     {change: func(_, b *clusterv1.MachineSet) { b.Annotations = map[string]string{from: "aa,ab"} }, want: "MachineSet b does not receive Machines from it"},
		"a megabyte": {change: func(_, b *clusterv1.MachineSet) {
			b.Annotations = map[string]string{from: "a," + strings.Repeat("x,", 1<<19)}
		}, want: "MachineSet b does not receive Machines from it"},
	} {
		a, b := setOf("a", "md", map[string]string{to: " b "}), setOf("b", "md", receiving)
		if tc.nothing {
			b = nil
		} else {
			tc.change(a, b)
		}
		if got := MoveProblem(a, b); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestListsOfNames(t *testing.T) {
	var many []string
	for n := range MaxListedNames {
		many = append(many, fmt.Sprintf("%s-%03d", strings.Repeat("m", 249), n))
	}
	for name, tc := range map[string]struct {
		list string
		want []string
	}{
		"none": {"", nil}, "commas": {" ,,", nil}, "twice": {"b, a,b", []string{"a", "b"}}, "the most": {List(many), many},
	} {
		set := setOf("b", "md", map[string]string{clusterv1.AcknowledgedMoveAnnotation: tc.list})
		if diff := cmp.Diff(tc.want, acknowledged(set)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestIsAwaitingCount(t *testing.T) { // IP-03
	set := setOf("b", "md", map[string]string{clusterv1.AcknowledgedMoveAnnotation: "m2"})
	moving := map[string]string{clusterv1.PendingAcknowledgeMoveAnnotation: "", clusterv1.UpdateInProgressAnnotation: ""}
	for name, tc := range map[string]struct {
		machine     string
		annotations map[string]string
		want        bool
	}{
		"handed over":       {"m1", moving, true},
		"counted":           {"m2", moving, false},
		"of its own":        {"m1", nil, false},
		"marked":            {"m1", map[string]string{clusterv1.UpdateInProgressAnnotation: ""}, false},
		"written by a user": {"m1", map[string]string{clusterv1.PendingAcknowledgeMoveAnnotation: ""}, false},
	} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: tc.machine, Annotations: tc.annotations}}
		if got := IsAwaitingCount(set, m); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
		if got, want := AwaitsStart(set, m), name == "counted" || name == "marked"; got != want {
			t.Errorf("%s: has not begun %t", name, got)
		}
	}
}

func TestHasFailed(t *testing.T) {
	for reason, want := range map[string]bool{"": false, clusterv1.MachineInPlaceUpdatingReason: false, clusterv1.MachineInPlaceUpdateFailedReason: true} {
		m := &clusterv1.Machine{}
		if reason != "" {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Reason: clusterv1.MachineInPlaceUpdateFailedReason}, {Type: clusterv1.MachineUpdatingCondition, Reason: reason}}
		}
		if got := HasFailed(m); got != want {
			t.Errorf("%q: %t", reason, got)
		}
	}
}

func TestWithoutMarks(t *testing.T) {
	with := map[string]string{
		"note": "1", clusterv1.PendingAcknowledgeMoveAnnotation: "", clusterv1.UpdateInProgressAnnotation: "", runtimev1.PendingHooksAnnotation: Hook,
	}
	if diff := cmp.Diff(map[string]string{"note": "1"}, WithoutMarks(with)); diff != "" || len(with) != 4 {
		t.Errorf("of %v (-want +got):\n%s", with, diff)
	}
	if diff := cmp.Diff(map[string]string{"note": "1"}, WithoutMarks(map[string]string{"note": "1"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
