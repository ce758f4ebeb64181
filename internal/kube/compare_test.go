package kube

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestContains(t *testing.T) {
	cases := map[string]struct {
		reason, live, want string
		yes                bool
	}{
		"more is fine":        {"others have fields too", `{"a":1,"b":2}`, `{"a":1}`, true},
		"value differs":       {"", `{"a":1}`, `{"a":2}`, false},
		"missing":             {"", `{}`, `{"a":null}`, false},
		"conditions by type":  {"order and others' entries do not matter", `[{"type":"B","x":1},{"type":"A","x":2}]`, `[{"type":"A","x":2}]`, true},
		"condition differs":   {"", `[{"type":"A","x":2}]`, `[{"type":"A","x":3}]`, false},
		"plain list longer":   {"an atomic list is one value", `["a","b"]`, `["a"]`, false},
		"addresses of a type": {"two entries of a type make it a plain list", `[{"type":"A","x":1},{"type":"A","x":2}]`, `[{"type":"A","x":1}]`, false},
		"list item has more":  {"items of plain lists are equal or not", `[{"a":1,"b":2}]`, `[{"a":1}]`, false},
		"owners by UID":       {"somebody else's owner reference is not ours to remove", `[{"uid":"a","x":1},{"uid":"b","x":2}]`, `[{"uid":"b","x":2}]`, true},
		"owner missing":       {"", `[{"uid":"a","x":1}]`, `[{"uid":"b","x":1}]`, false},
		"taints by two keys":  {"one key may have several effects", `[{"key":"k","effect":"A"},{"key":"k","effect":"B"}]`, `[{"key":"k","effect":"B"}]`, true},
		"gates by type":       {"", `[{"conditionType":"A"},{"conditionType":"B"}]`, `[{"conditionType":"C"}]`, false},
		"list against object": {"", `{"a":1}`, `[1]`, false},
	}
	for name, tc := range cases {
		if got := contains(value(t, tc.live), value(t, tc.want)); got != tc.yes {
			t.Errorf("%s: got %v (%s)", name, got, tc.reason)
		}
	}
}

func TestOwnsMore(t *testing.T) {
	fields := `{"f:metadata":{"f:finalizers":{".":{},"v:\"x\"":{}}},"f:status":{"f:phase":{},"f:conditions":{".":{},"k:{\"type\":\"A\"}":{".":{},"f:type":{},"f:status":{}}}}}`
	entry := metav1.ManagedFieldsEntry{Manager: "slipway-x", Operation: "Apply", Subresource: "status", FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)}}
	own := owned([]metav1.ManagedFieldsEntry{{Manager: "other"}, entry}, "slipway-x", "status")
	full := `{"metadata":{"finalizers":["x"]},"status":{"phase":"p","conditions":[{"type":"A","status":"True"}]}}`
	cases := map[string]struct {
		want string
		yes  bool
	}{
		"all wanted":       {full, false},
		"value gone":       {`{"metadata":{"finalizers":[]},"status":{"phase":"p","conditions":[{"type":"A","status":"True"}]}}`, true},
		"condition gone":   {`{"metadata":{"finalizers":["x"]},"status":{"phase":"p","conditions":[]}}`, true},
		"inner field gone": {`{"metadata":{"finalizers":["x"]},"status":{"phase":"p","conditions":[{"type":"A"}]}}`, true},
		"more is wanted":   {`{"metadata":{"finalizers":["x","y"]},"status":{"phase":"p","new":1,"conditions":[{"type":"A","status":"True"}]}}`, false},
	}
	for name, tc := range cases {
		if got := ownsMore(own, value(t, full), value(t, tc.want)); got != tc.yes {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if len(owned([]metav1.ManagedFieldsEntry{entry}, "slipway-x", "")) != 0 {
		t.Error("fields of the status are not fields of the object")
	}
}

// What was parsed once is not parsed again, and no one changes it.
func TestFieldSets(t *testing.T) {
	entry := metav1.ManagedFieldsEntry{Manager: "slipway-x", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{},"f:status":{"f:of":{}}}`)}
	for range 2 {
		for subresource, want := range map[string]string{"": "f:metadata", "status": "f:status"} {
			got := slices.Collect(maps.Keys(owned([]metav1.ManagedFieldsEntry{entry}, "slipway-x", subresource)))
			if diff := cmp.Diff([]string{want}, got); diff != "" {
				t.Errorf("fields of %q: %s", subresource, diff)
			}
		}
	}
	if again := testing.AllocsPerRun(10, func() { parsedFieldSets.object(entry.FieldsV1.Raw) }); again > 1 {
		t.Errorf("a text that is known costs %v allocations", again)
	}
	for _, bad := range []string{"", "[]", "{"} {
		if got := parsedFieldSets.object([]byte(bad)); got != nil {
			t.Errorf("%q is no object: %v", bad, got)
		}
	}
}
