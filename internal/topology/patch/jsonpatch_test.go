package patch

import (
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

func TestApply(t *testing.T) {
	const object = `{"a":1,"b":{"c":["x"]}}`
	for name, tc := range map[string]struct {
		kind         runtimehooksv1.PatchType
		patch        string
		want, refuse string
	}{
		"nothing, whatever the type":    {"", "", object, ""},
		"null":                          {runtimehooksv1.JSONMergePatchType, " null ", object, ""},
		"an empty list":                 {runtimehooksv1.JSONPatchType, "[]", object, ""},
		"a merge patch":                 {runtimehooksv1.JSONMergePatchType, `{"a":null,"d":true}`, `{"b":{"c":["x"]},"d":true}`, ""},
		"a JSON patch":                  {runtimehooksv1.JSONPatchType, `[{"op":"replace","path":"/a","value":2}]`, `{"a":2,"b":{"c":["x"]}}`, ""},
		"a path that is not there":      {runtimehooksv1.JSONPatchType, `[{"op":"add","path":"/d/e","value":1}]`, `{"a":1,"b":{"c":["x"]},"d":{"e":1}}`, ""},
		"a type that is unknown":        {"Strategic", `{"a":2}`, "", `patch type "Strategic" is unknown`},
		"no patch":                      {runtimehooksv1.JSONPatchType, `{"a":2}`, "", "cannot be read"},
		"an operation without a path":   {runtimehooksv1.JSONPatchType, `[{"op":"remove"}]`, "", "path"},
		"an index that costs memory":    {runtimehooksv1.JSONPatchType, `[{"op":"add","path":"/b/c/10001","value":1}]`, "", "at most 10000"},
		"an index with a sign":          {runtimehooksv1.JSONPatchType, `[{"op":"add","path":"/d/+10001","value":1}]`, "", "at most 10000"},
		"indices that cost memory":      {runtimehooksv1.JSONPatchType, `[{"op":"add","path":"/d` + strings.Repeat("/10000", 1000) + `","value":1}]`, "", "missing path"},
		"a few that are created":        {runtimehooksv1.JSONPatchType, `[{"op":"add","path":"/b/c/2/1","value":1}]`, `{"a":1,"b":{"c":["x",null,[null,1]]}}`, ""},
		"a copy that costs memory":      {runtimehooksv1.JSONPatchType, `[{"op":"add","path":"/big","value":"` + strings.Repeat("x", 1<<19) + `"},{"op":"copy","from":"/big","path":"/c1"},{"op":"copy","from":"/big","path":"/c2"},{"op":"copy","from":"/big","path":"/c3"}]`, "", "copy"},
		"a test that does not hold":     {runtimehooksv1.JSONPatchType, `[{"op":"test","path":"/a","value":2}]`, "", "test"},
		"a merge patch that is no JSON": {runtimehooksv1.JSONMergePatchType, `{`, "", "Invalid JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ApplyPatch(tc.kind, []byte(object), []byte(tc.patch))
			switch {
			case tc.refuse == "" && err != nil:
				t.Fatal(err)
			case tc.refuse != "" && (err == nil || !strings.Contains(err.Error(), tc.refuse)):
				t.Fatalf("got %v, want an error with %q", err, tc.refuse)
			case err == nil && string(got) != tc.want:
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
