package clusterresourceset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func names(c content) []string {
	var out []string
	for _, o := range c.Objects {
		out = append(out, o.GetKind()+" "+o.GetName())
	}
	return out
}

func doc(kind, name string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
}

func TestRead(t *testing.T) { // RS-02, RS-03
	for name, tc := range map[string]struct {
		reason  string
		data    map[string]string
		want    []string
		problem string
	}{
		"keys":      {"in the order of their names", map[string]string{"2": doc("ConfigMap", "b"), "1": doc("ConfigMap", "c"), "10": doc("ConfigMap", "a")}, []string{"ConfigMap c", "ConfigMap a", "ConfigMap b"}, ""},
		"documents": {"in theirs", map[string]string{"a": doc("Pod", "b") + "---\n" + doc("Pod", "a")}, []string{"Pod b", "Pod a"}, ""},
		"priority": {"what others need goes first, inside of one value", map[string]string{"a": strings.Join([]string{
			doc("ValidatingWebhookConfiguration", "w"), doc("Deployment", "d"), doc("Widget", "x"), doc("Service", "s"), doc("ConfigMap", "c"),
			doc("ServiceAccount", "a"), doc("CustomResourceDefinition", "crd"), doc("Namespace", "space")}, "---\n")},
			[]string{"Namespace space", "CustomResourceDefinition crd", "ServiceAccount a", "ConfigMap c", "Service s", "Deployment d", "Widget x", "ValidatingWebhookConfiguration w"}, ""},
		"keys before priority": {"keys are applied one after the other", map[string]string{"1": doc("Pod", "p"), "2": doc("Namespace", "space")}, []string{"Pod p", "Namespace space"}, ""},
		"JSON":                 {"a document may be JSON", map[string]string{"a": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`}, []string{"Pod p"}, ""},
		"JSON list":            {"or a list of objects", map[string]string{"a": ` [{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}]`}, []string{"Namespace n", "Pod p"}, ""},
		"List":                 {"or of kind List", map[string]string{"a": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p}}\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n"}, []string{"Secret s", "Pod p"}, ""},
		"comments":             {"documents of nothing are none", map[string]string{"a": "# only\n---\n" + doc("Pod", "p") + "---\n"}, []string{"Pod p"}, ""},
		"nothing":              {"no keys, no objects", nil, nil, ""},
		"no YAML":              {"said with the key", map[string]string{"good": doc("Pod", "p"), "bad": "a: b: c"}, nil, "key bad: document 1: "},
		"no kind":              {"said", map[string]string{"a": "x: y"}, nil, "key a: document 1 has no kind"},
		"no name":              {"said", map[string]string{"a": "apiVersion: v1\nkind: Pod"}, nil, `key a: document 1 of kind "Pod" has no apiVersion or no metadata.name`},
		"bad JSON list":        {"said", map[string]string{"a": "[1]"}, nil, "key a: document 1 item 1 has no kind"},
		"bad List":             {"said", map[string]string{"a": "apiVersion: v1\nkind: List\nitems: [1]"}, nil, "key a: document 1 item 1 has no kind"},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for k, v := range tc.data {
				data[k] = []byte(v)
			}
			c := read(data)
			if diff := cmp.Diff(tc.want, names(c)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if !strings.HasPrefix(c.Problem, tc.problem) || (c.Problem == "") != (tc.problem == "") {
				t.Errorf("%s: problem %q, want %q", tc.reason, c.Problem, tc.problem)
			}
		})
	}
}

func TestHash(t *testing.T) { // RS-06
	hash := func(pairs ...string) string {
		data := map[string][]byte{}
		for i := 0; i < len(pairs); i += 2 {
			data[pairs[i]] = []byte(pairs[i+1])
		}
		return read(data).Hash
	}
	if hash("a", "x", "b", "y") != hash("b", "y", "a", "x") {
		t.Error("the order of a map is none")
	}
	seen := map[string]bool{}
	for _, h := range []string{hash("a", "x", "b", "y"), hash("a", "y", "b", "x"), hash("a", "x"), hash("ax", ""), hash("a", "x b y"), hash()} {
		if seen[h] || len(h) > 256 {
			t.Errorf("another content has the same hash %s", h)
		}
		seen[h] = true
	}
}

func FuzzRead(f *testing.F) { // RS-02: whatever a user writes is an object or a problem, never a panic
	for _, seed := range []string{"", "---", "[", "[{}]", "a: b", doc("Pod", "p"), "kind: List\napiVersion: v1\nitems: [[]]", "{\"apiVersion\": 1, \"kind\": {}}", "metadata: []\nkind: A\napiVersion: v1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := read(map[string][]byte{"k": text})
		for _, o := range c.Objects {
			if o.GetKind() == "" || o.GetName() == "" {
				t.Errorf("an object without kind or name: %v", o)
			}
		}
	})
}
