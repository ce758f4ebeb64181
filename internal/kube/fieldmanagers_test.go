package kube

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/fault"
)

func fakeClient(t *testing.T, objs ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objs...).WithReturnManagedFields().Build()
}

func configMap(labels map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "ns", "name": "x", "labels": labels},
		"data":     map[string]any{"key": "value"},
	}}
}

func read(t *testing.T, c client.Client) *corev1.ConfigMap {
	t.Helper()
	out := &corev1.ConfigMap{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "x"}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestNamedWritersCount: applies under another name of a field manager are counted as those of the controller.
func TestNamedWritersCount(t *testing.T) { // ME-01
	c := fakeClient(t)
	var counted []string
	w := NewWriter(c, "test")
	w.OnApply(func(kind string, sent bool) { counted = append(counted, fmt.Sprintf("%s %t", kind, sent)) })
	want := configMap(map[string]any{"a": "1"})
	if err := w.WithManager("capi-x").Apply(t.Context(), nil, want); err != nil {
		t.Fatal(err)
	}
	if err := w.WithManager("capi-x").Apply(t.Context(), read(t, c), want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap true", "ConfigMap false"}, counted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCreateApplied(t *testing.T) { // MS-09
	c := fakeClient(t)
	w := NewWriter(c, "test").WithManager("capi-x")
	made := configMap(map[string]any{"a": "1"})
	if err := w.CreateApplied(context.Background(), made); err != nil {
		t.Fatal(err)
	}
	live := read(t, c)
	if len(live.ManagedFields) != 1 || live.ManagedFields[0].Manager != "capi-x" || live.ManagedFields[0].Operation != "Apply" {
		t.Errorf("managed fields %+v", live.ManagedFields)
	}
	if made.GetResourceVersion() != live.ResourceVersion {
		t.Errorf("the object passed in is not what was created")
	}
	if diff := cmp.Diff(OwnedKeys{Labels: []string{"a"}}, OwnedMetadata(live, "capi-x")); diff != "" {
		t.Errorf("owned (-want +got):\n%s", diff)
	}
	if same, err := IsApplied(live, "capi-x", configMap(map[string]any{"a": "1"}).Object); err != nil || !same {
		t.Errorf("the object is as it was applied, got %t, %v", same, err)
	}
	if same, _ := IsApplied(live, "capi-x", configMap(map[string]any{}).Object); same {
		t.Error("a field that is not wanted any more is a change")
	}
	if same, _ := IsApplied(live, "slipway-test", configMap(map[string]any{"a": "1"}).Object); same {
		t.Error("another manager has said nothing of the object")
	}
	err := NewWriter(c, "test").WithManager("capi-y").CreateApplied(context.Background(), configMap(map[string]any{"a": "2"}))
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("an object that is there already is taken over: %v", err)
	}
}

func TestHandOver(t *testing.T) { // MS-09
	c := fakeClient(t)
	ctx := context.Background()
	creator := NewWriter(c, "test").WithManager("capi-x")
	if err := creator.CreateApplied(ctx, configMap(map[string]any{"mine": "1", "moves": "1", "goes": "1"})); err != nil {
		t.Fatal(err)
	}
	labels := creator.WithManager("capi-x-metadata")
	move := OwnershipTransfer{From: []string{"capi-x", "manager"}, To: "capi-x-metadata", Takes: func(p fieldpath.Path) bool {
		return len(p) == 3 && p[1].String() == ".labels" && p[2].String() != ".mine"
	}}
	for range 2 { // the second time nothing is left to move
		if err := labels.TransferOwnership(ctx, read(t, c), move); err != nil {
			t.Fatal(err)
		}
	}
	want := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "ns", "name": "x", "labels": map[string]any{"moves": "2"}}}}
	if err := labels.Apply(ctx, read(t, c), want); err != nil {
		t.Fatal(err)
	}
	live := read(t, c)
	if diff := cmp.Diff(map[string]string{"mine": "1", "moves": "2"}, live.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if live.Data["key"] != "value" || len(live.ManagedFields) != 2 {
		t.Errorf("data %v, managed fields %+v", live.Data, live.ManagedFields)
	}
}

func TestHandOverOfEntries(t *testing.T) { // MS-09
	entry := func(manager, operation, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: "v1",
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	h := OwnershipTransfer{From: []string{"manager"}, To: "to", Takes: func(p fieldpath.Path) bool { return p[0].String() == ".metadata" }}
	cases := map[string]struct {
		reason     string
		have, want []metav1.ManagedFieldsEntry
	}{
		"nothing": {"nobody owns anything of it", []metav1.ManagedFieldsEntry{entry("x", "Apply", `{"f:metadata":{"f:labels":{}}}`)},
			[]metav1.ManagedFieldsEntry{entry("x", "Apply", `{"f:metadata":{"f:labels":{}}}`)}},
		"all of an entry": {"the entry goes", []metav1.ManagedFieldsEntry{entry("manager", "Update", `{"f:metadata":{"f:labels":{}}}`)},
			[]metav1.ManagedFieldsEntry{entry("to", "Apply", `{"f:metadata":{"f:labels":{}}}`)}},
		"part of an entry": {"the rest stays",
			[]metav1.ManagedFieldsEntry{entry("to", "Apply", `{"f:metadata":{"f:labels":{"f:a":{}}}}`), entry("manager", "Update", `{"f:metadata":{"f:labels":{"f:b":{}}},"f:spec":{}}`)},
			[]metav1.ManagedFieldsEntry{entry("to", "Apply", `{"f:metadata":{"f:labels":{"f:a":{},"f:b":{}}}}`), entry("manager", "Update", `{"f:spec":{}}`)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, moves, err := h.apply(tc.have)
			if err != nil || moves == cmp.Equal(tc.have, tc.want) {
				t.Fatalf("moves %t, error %v", moves, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if _, _, err := h.apply([]metav1.ManagedFieldsEntry{entry("manager", "Update", `{"f:`)}); err == nil {
		t.Error("fields that cannot be read are no error")
	}
}

func TestPending(t *testing.T) {
	var p Pending
	at := time.Unix(1e9, 0)
	for _, name := range []string{"b", "a", "c"} {
		p.Add("owner", name, at)
	}
	p.Add("other", "d", at)
	got := p.Settle("owner", func(name string) bool { return name == "c" })
	if diff := cmp.Diff([]PendingName{{"a", at}, {"b", at}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left := p.Settle("owner", func(string) bool { return true }); len(left) > 0 || len(p.names) != 1 {
		t.Errorf("left %v of %v", left, p.names)
	}
}
