package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKeepOwnFields(t *testing.T) { // RC-07
	entries := []metav1.ManagedFieldsEntry{
		{Manager: "kubectl"}, {Manager: "slipway-machine"}, {Manager: "slipway-local-machine", Subresource: "status"}, {Manager: "capi-topology"},
	}
	names := func(o client.Object) (out []string) {
		for _, e := range o.GetManagedFields() {
			out = append(out, e.Manager)
		}
		return out
	}
	of := func(o client.Object, entries ...metav1.ManagedFieldsEntry) client.Object {
		o.SetName("n")
		o.SetManagedFields(entries)
		return o
	}
	foreign := func() client.Object { return &unstructured.Unstructured{Object: map[string]any{}} }
	for name, tc := range map[string]struct {
		reason string
		object client.Object
		want   []string
	}{
		"typed":                   {"its status may be ours to write", of(&clusterv1.Machine{}, entries...), []string{"slipway-machine", "slipway-local-machine", "capi-topology"}},
		"unstructured":            {"another controller writes its status", of(foreign(), entries...), []string{"slipway-machine", "capi-topology"}},
		"typed, nothing ours":     {"", of(&clusterv1.Machine{}, entries[0]), nil},
		"unstructured, none ours": {"", of(foreign(), entries[0], entries[2]), nil},
		"unstructured, none":      {"", of(foreign()), nil},
		"without metadata":        {"", foreign(), nil},
	} {
		if _, err := PruneManagedFields(tc.object); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, names(tc.object)); diff != "" {
			t.Errorf("%s: %s: want -, got +:\n%s", name, tc.reason, diff)
		}
	}
	if out, err := PruneManagedFields("tombstone"); out != "tombstone" || err != nil {
		t.Errorf("not an object: %v, %v", out, err)
	}
}

func TestWithoutManagedFields(t *testing.T) {
	for name, o := range map[string]client.Object{
		"typed": &clusterv1.Machine{}, "unstructured": &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": "b"}}},
	} {
		o.SetName("n")
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
		before := o.DeepCopyObject().(client.Object)
		got := withoutManagedFields(o)
		if diff := cmp.Diff(before, o); diff != "" {
			t.Errorf("%s: the object itself has changed:\n%s", name, diff)
		}
		before.SetManagedFields(nil)
		if diff := cmp.Diff(before, got); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", name, diff)
		}
	}
}

func TestJSONValue(t *testing.T) {
	type inner struct {
		Count *int32   `json:"count,omitempty"`
		Names []string `json:"names,omitempty"`
	}
	value := struct {
		Number  int32          `json:"number"`
		Inner   inner          `json:"inner,omitzero"`
		Nothing inner          `json:"nothing,omitzero"`
		Time    metav1.Time    `json:"time"`
		Any     map[string]any `json:"any"`
	}{Number: 3, Inner: inner{Count: new(int32(4)), Names: []string{"a"}}, Any: map[string]any{"float": 1.5, "whole": 7, "items": []metav1.Condition{{Type: "T"}}}}
	got, err := jsonValue(value)
	want := map[string]any{
		"number": int64(3), "inner": map[string]any{"count": int64(4), "names": []any{"a"}}, "time": nil,
		"any": map[string]any{"float": 1.5, "whole": int64(7), "items": []any{
			map[string]any{"type": "T", "status": "", "lastTransitionTime": nil, "reason": "", "message": ""},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v; want -, got +:\n%s", err, diff)
	}
	if _, err := jsonValue([]string{"a"}); err == nil {
		t.Error("a list is no object")
	}
}
