package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// formerStatus is what the reference implementation leaves of a status, with a condition of someone else.
const formerStatus = `{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:reason":{}},"k:{\"type\":\"Other\"}":{".":{},"f:reason":{}}},"f:phase":{},"f:versions":{}}}`

func statusEntry(manager, operation, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: "status"}
}

func TestStatusHandOver(t *testing.T) { // MS-09
	for name, tc := range map[string]struct {
		reason string
		takes  func(fieldpath.Path) bool
		want   []metav1.ManagedFieldsEntry
	}{
		"all but the conditions of others": {"what a driver reports", AllButConditions("Ready", "New"), []metav1.ManagedFieldsEntry{
			statusEntry("manager", "Update", `{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Other\"}":{".":{},"f:reason":{}}}}}`),
			statusEntry("slipway-x", "Apply", `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:reason":{}}},"f:phase":{},"f:versions":{}}}`),
		}},
		"a condition": {"what a controller says of the objects of another", OnlyConditions("Other"), []metav1.ManagedFieldsEntry{
			statusEntry("manager", "Update", `{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:reason":{}}},"f:phase":{},"f:versions":{}}}`),
			statusEntry("slipway-x", "Apply", `{"f:status":{"f:conditions":{"k:{\"type\":\"Other\"}":{".":{},"f:reason":{}}}}}`),
		}},
		"none": {"it says nothing of any", OnlyConditions(), []metav1.ManagedFieldsEntry{statusEntry("manager", "Update", formerStatus)}},
	} {
		t.Run(name, func(t *testing.T) {
			h := OwnershipTransfer{From: []string{upstreamManager}, To: "slipway-x", Subresource: "status", Takes: belowStatus(tc.takes)}
			got, moves, err := h.apply([]metav1.ManagedFieldsEntry{statusEntry("manager", "Update", formerStatus)})
			if err != nil || moves != (len(tc.want) > 1) {
				t.Fatalf("moves %t, error %v", moves, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if _, again, err := h.apply(got); again || err != nil {
				t.Errorf("moves once more, error %v", err)
			}
		})
	}
}

func TestFormerlyOwned(t *testing.T) { // MS-18
	node := &corev1.Node{}
	node.ManagedFields = []metav1.ManagedFieldsEntry{
		statusEntry("manager", "Update", formerStatus), statusEntry("kubelet", "Update", `{"f:status":{"f:conditions":{"k:{\"type\":\"Disk\"}":{}}}}`),
		{Manager: "manager", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}, {Manager: "capi-x", Operation: "Apply"},
	}
	if _, err := PruneManagedFields(node); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, e := range node.ManagedFields {
		kept = append(kept, e.Manager+e.Subresource)
	}
	if diff := cmp.Diff([]string{"managerstatus", "capi-x"}, kept); diff != "" {
		t.Errorf("kept in a cache (-want +got):\n%s", diff)
	}
	for conditionType, want := range map[string]bool{"Ready": true, "Other": true, "Disk": false, "None": false} {
		if got := IsOwnedUpstream(node, conditionType); got != want {
			t.Errorf("%s: %t", conditionType, got)
		}
	}
}
