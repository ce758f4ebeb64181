package openapi_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
)

// RT-25: what breaks extensions is found between two documents, and what does not is not.
func TestBreaking(t *testing.T) {
	const (
		create   = "hooks.v1alpha1.BeforeClusterCreateRequest"
		created  = "hooks.v1alpha1.BeforeClusterCreateResponse"
		patches  = "hooks.v1alpha1.GeneratePatchesResponseItem"
		variable = "hooks.v1alpha1.Variable"
		path     = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/{name}"
	)
	cases := map[string]struct {
		reason string
		before func(d *openapi.Doc)
		after  func(d *openapi.Doc)
		want   []string
	}{
		"nothing": {},
		"gone":    {after: func(d *openapi.Doc) { delete(d.Paths, path) }, want: []string{"BeforeClusterCreate-v1alpha1: the hook is gone, and was not deprecated"}},
		"gone after its time": {
			before: func(d *openapi.Doc) { d.Paths[path].Post.Deprecated = true }, after: func(d *openapi.Doc) { delete(d.Paths, path) },
		},
		"new hook": {before: func(d *openapi.Doc) { delete(d.Paths, path) }},
		"new field": {after: func(d *openapi.Doc) {
			d.Components.Schemas[create].Properties["more"] = &openapi.Schema{Type: "string"}
			d.Components.Schemas[created].Properties["more"] = &openapi.Schema{Type: "string"}
		}},
		"new field that a request always has": {after: func(d *openapi.Doc) {
			s := d.Components.Schemas[create]
			s.Properties["more"], s.Required = &openapi.Schema{Type: "string"}, append(s.Required, "more")
		}},
		"new field that a response must have": {
			reason: "handlers made before do not know it",
			after: func(d *openapi.Doc) {
				s := d.Components.Schemas[created]
				s.Properties["more"], s.Required = &openapi.Schema{Type: "string"}, append(s.Required, "more")
			},
			want: []string{"BeforeClusterCreate-v1alpha1: response.more: it must be there now"},
		},
		"field of a request is gone": {
			after: func(d *openapi.Doc) { delete(d.Components.Schemas[create].Properties, "settings") },
			want:  []string{"BeforeClusterCreate-v1alpha1: request.settings: it is gone"},
		},
		"field of a request may be left out": {
			reason: "handlers read it",
			after: func(d *openapi.Doc) {
				s := d.Components.Schemas[create]
				s.Required = slices.DeleteFunc(s.Required, func(n string) bool { return n == "cluster" })
			},
			want: []string{"BeforeClusterCreate-v1alpha1: request.cluster: it need not be there any more"},
		},
		"another type, far below": {
			after: func(d *openapi.Doc) {
				d.Components.Schemas[variable].Properties["name"] = &openapi.Schema{Type: "integer", Format: "int64"}
			},
			want: []string{
				"GeneratePatches-v1alpha1: request.items[].variables[].name: it is integer (int64), not string",
				"ValidateTopology-v1alpha1: request.items[].variables[].name: it is integer (int64), not string",
			},
		},
		"fewer values of a response": {
			after: func(d *openapi.Doc) {
				d.Components.Schemas[patches].Properties["patchType"].Enum = []string{"JSONPatch"}
			},
			want: []string{"GeneratePatches-v1alpha1: response.items[].patchType: fewer values are allowed: JSONPatch"},
		},
		"values of a response that were open": {
			before: func(d *openapi.Doc) { d.Components.Schemas[patches].Properties["patchType"].Enum = nil },
			want:   []string{"GeneratePatches-v1alpha1: response.items[].patchType: fewer values are allowed: JSONPatch, JSONMergePatch"},
		},
		"words": {after: func(d *openapi.Doc) {
			d.Paths[path].Post.Summary = "x"
			d.Components.Schemas[create].Description = "x"
		}},
	}
	copied := func() *openapi.Doc {
		data, err := json.Marshal(document(t, hooks.Default(), openapi.Info{}))
		out := &openapi.Doc{}
		if err == nil {
			err = json.Unmarshal(data, out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := copied(), copied()
			if tc.before != nil {
				tc.before(before)
			}
			if tc.after != nil {
				tc.after(after)
			}
			if d := cmp.Diff(tc.want, openapi.Breaking(before, after)); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
		})
	}
}
