package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObjects(t *testing.T) {
	tests := map[string]struct {
		reason string
		text   string
		want   []string
		err    string
	}{
		"documents":  {"empty documents and comments are no objects", "# one\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n---\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}\n", []string{"Secret a", "Pod b"}, ""},
		"list":       {"the items of a list are objects of the manifest", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: a}}\n", []string{"Secret a"}, ""},
		"nested":     {"lists may contain lists", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: PodList, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]}\n", []string{"Pod a"}, ""},
		"no object":  {"the items of a list are objects", "apiVersion: v1\nkind: List\nitems: [1]\n", nil, "document 1 item 1 has no kind"},
		"items":      {"only lists have items", "apiVersion: v1\nkind: Menu\nmetadata: {name: a}\nitems: [1]\n", []string{"Menu a"}, ""},
		"no name":    {"what has no name cannot be applied", "apiVersion: v1\nkind: Secret\n", nil, "document 1 of kind \"Secret\" has no apiVersion or no metadata.name"},
		"no YAML":    {"the error names the document", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n{", nil, "document 2"},
		"no mapping": {"a scalar is no object", "text\n", nil, "document 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects([]byte(tt.text))
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Fatalf("%s: error %v, want %q", tt.reason, err, tt.err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetKind()+" "+o.GetName())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// Integers keep their type and large numbers their value, which a float64 would not.
func TestIntegersStayIntegers(t *testing.T) {
	objects, err := Objects([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a, generation: 9007199254740993}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := objects[0].GetGeneration(); got != 9007199254740993 {
		t.Errorf("generation %d", got)
	}
}

func TestDocuments(t *testing.T) {
	got, err := Documents([]byte("---\n# one\na: 1 # kept\n---\n---\nb: 2\n"))
	var texts []string
	for _, d := range got {
		texts = append(texts, strings.TrimSpace(string(d)))
	}
	if diff := cmp.Diff([]string{"# one\na: 1 # kept", "b: 2"}, texts); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func FuzzObjects(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n---\n"))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := Objects(data)
		if err != nil {
			return
		}
		text, err := YAML(objects)
		if err != nil {
			return // a list may contain items that are not objects
		}
		again, err := Objects(text)
		if err == nil && len(again) != len(objects) {
			t.Errorf("%d objects become %d:\n%s", len(objects), len(again), text)
		}
	})
}
