package patch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension/patch"
)

func canonical(t *testing.T, data []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// RT-24: both formats, and a patch that is computed applies.
func TestDiff(t *testing.T) {
	cases := map[string]struct {
		reason, from, to, json, merge string
	}{
		"equal":   {"nothing to send", `{"a":1,"b":2}`, `{"b":2,"a":1}`, "", ""},
		"add":     {"a field more", `{"a":1}`, `{"a":1,"b":{"c":2}}`, `[{"op":"add","path":"/b","value":{"c":2}}]`, `{"b":{"c":2}}`},
		"change":  {"another value", `{"a":1}`, `{"a":2}`, `[{"op":"replace","path":"/a","value":2}]`, `{"a":2}`},
		"remove":  {"a field less", `{"a":1,"b":2}`, `{"b":2}`, `[{"op":"remove","path":"/a"}]`, `{"a":null}`},
		"several": {"the order is always the same", `{}`, `{"c":1,"a":1,"b":1}`, `[{"op":"add","path":"/a","value":1},{"op":"add","path":"/b","value":1},{"op":"add","path":"/c","value":1}]`, `{"a":1,"b":1,"c":1}`},
		"list":    {"a list of the merge patch is whole", `{"l":[1]}`, `{"l":[1,2]}`, `[{"op":"add","path":"/l/1","value":2}]`, `{"l":[1,2]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for format, want := range map[hooksv1.PatchType]string{hooksv1.JSONPatchType: tc.json, hooksv1.JSONMergePatchType: tc.merge} {
				got, err := patch.Diff(format, []byte(tc.from), []byte(tc.to))
				if err != nil {
					t.Fatal(err)
				}
				if want == "" {
					if got != nil {
						t.Errorf("%s: %s", tc.reason, got)
					}
					continue
				}
				if d := cmp.Diff(canonical(t, []byte(want)), canonical(t, got)); d != "" {
					t.Errorf("%s, %s (-want +got):\n%s", tc.reason, format, d)
				}
				after, err := patch.Apply(format, []byte(tc.from), got)
				if err != nil || canonical(t, after) != canonical(t, []byte(tc.to)) {
					t.Errorf("applied: %s, %v", after, err)
				}
			}
		})
	}
	if _, err := patch.Diff("Other", []byte("{}"), []byte(`{"a":1}`)); err == nil || !strings.Contains(err.Error(), "neither JSONPatch nor JSONMergePatch") {
		t.Errorf("an unknown format: %v", err)
	}
	if _, err := patch.Apply(hooksv1.JSONPatchType, []byte("{}"), []byte(`[{"op":"remove","path":"/a"}]`)); err == nil {
		t.Error("a patch that does not fit is applied")
	}
}

type machine struct {
	Metadata struct {
		CreationTimestamp *string `json:"creationTimestamp"` // written as null where it is missing
	} `json:"metadata"`
	Spec struct {
		Image    string `json:"image,omitempty"`
		Replicas int    `json:"replicas"` // written as 0 where it is missing
	} `json:"spec"`
}

// RT-24: what a Go type does not know, or would write without need, stays as it is.
func TestTyped(t *testing.T) {
	const object = `{"kind":"M","spec":{"image":"a","unknown":9007199254740993},"later":true}`
	after, err := patch.Typed([]byte(object), func(m *machine) error { m.Spec.Image = "b"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"kind":"M","spec":{"image":"b","unknown":9007199254740993},"later":true}`; !jsonSame(string(after), want) {
		t.Errorf("got %s, want %s", after, want)
	}
	if after, err = patch.Typed([]byte(object), func(*machine) error { return nil }); err != nil || string(after) != object {
		t.Errorf("nothing was changed: %s %v", after, err)
	}
	if _, err := patch.Typed([]byte(`{"spec":3}`), func(*machine) error { return nil }); err == nil {
		t.Error("an object of another shape is accepted")
	}
}

// jsonSame compares JSON with numbers as they are written.
func jsonSame(a, b string) bool {
	decode := func(s string) any {
		d := json.NewDecoder(strings.NewReader(s))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			return nil
		}
		return v
	}
	return cmp.Equal(decode(a), decode(b))
}
