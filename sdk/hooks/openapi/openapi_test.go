package openapi_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/sdk/hooks/openapi"
)

func document(t *testing.T, c *hooks.Catalog, info openapi.Info) *openapi.Doc {
	t.Helper()
	doc, err := openapi.Document(c, info)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// RT-22: every hook is there, at its path, with its words; all references lead somewhere.
func TestDocument(t *testing.T) {
	doc := document(t, hooks.Default(), openapi.Info{Version: "v1"})
	all := hooks.Default().All()
	if len(doc.Paths) != len(all) {
		t.Errorf("%d paths for %d hooks", len(doc.Paths), len(all))
	}
	for _, h := range all {
		path := h.Path("")
		if !h.Singleton {
			path += "/{name}"
		}
		item := doc.Paths[path]
		if item == nil || item.Post.Summary != h.Summary || item.Post.Description != h.Description {
			t.Errorf("%s is missing or has other words", path)
			continue
		}
		request := item.Post.RequestBody.Content["application/json"].Schema.Ref
		schema := doc.Components.Schemas[strings.TrimPrefix(request, "#/components/schemas/")]
		if schema == nil || !cmp.Equal(schema.Properties["kind"].Enum, []string{h.RequestKind()}) {
			t.Errorf("%s: its request is %+v", path, schema)
		}
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(data), `"$ref":"`) {
		name, ok := strings.CutPrefix(part, "#/components/schemas/")
		if name, _, _ = strings.Cut(name, `"`); ok && doc.Components.Schemas[name] == nil {
			t.Errorf("a reference leads nowhere: %s", name)
		}
	}
	again, err := json.Marshal(document(t, hooks.Default(), openapi.Info{Version: "v1"}))
	if err != nil || string(again) != string(data) {
		t.Error("the document is not the same twice")
	}
}

// RT-22: schemas say what JSON the Go types are.
func TestSchemas(t *testing.T) {
	doc := document(t, hooks.Default(), openapi.Info{Describe: func(of reflect.Type, field string) string {
		if of == reflect.TypeFor[hooksv1.GeneratePatchesResponseItem]() {
			return "about " + field
		}
		return ""
	}})
	const v1alpha1 = "hooks.v1alpha1."
	text := func(s *openapi.Schema) string {
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for schema, want := range map[string]string{
		v1alpha1 + "GeneratePatchesResponseItem patch":         `{"type":"string","format":"byte","description":"about patch"}`,
		v1alpha1 + "GeneratePatchesResponseItem patchType":     `{"type":"string","description":"about patchType","enum":["JSONPatch","JSONMergePatch"]}`,
		v1alpha1 + "GeneratePatchesRequestItem object":         `{"type":"object","additionalProperties":{}}`,
		v1alpha1 + "Variable value":                            `{}`,
		v1alpha1 + "BeforeClusterCreateRequest settings":       `{"type":"object","additionalProperties":{"type":"string"}}`,
		v1alpha1 + "BeforeClusterCreateRequest cluster":        `{"$ref":"#/components/schemas/core.v1beta2.Cluster"}`,
		v1alpha1 + "BeforeClusterCreateResponse status":        `{"type":"string","enum":["Success","Failure"]}`,
		v1alpha1 + "BeforeClusterCreateResponse kind":          `{"type":"string","description":"What this object is.","enum":["BeforeClusterCreateResponse"]}`,
		v1alpha1 + "ExtensionHandler timeoutSeconds":           `{"type":"integer","format":"int32"}`,
		"meta.v1.ObjectMeta creationTimestamp":                 `{"type":"string","format":"date-time"}`,
		"core.v1beta2.ClusterSpec paused":                      `{"type":"boolean"}`,
		"core.v1beta2.JSONSchemaProps properties":              `{"type":"object","additionalProperties":{"$ref":"#/components/schemas/core.v1beta2.JSONSchemaProps"}}`,
		"core.v1beta2.MachineDeploymentTopology failureDomain": `{"type":"string"}`,
	} {
		name, field, _ := strings.Cut(schema, " ")
		s := doc.Components.Schemas[name]
		if s == nil {
			t.Errorf("%s is missing", name)
			continue
		}
		if got := text(s.Properties[field]); got != want {
			t.Errorf("%s: got %s, want %s", schema, got, want)
		}
	}
	for name, want := range map[string][]string{
		"BeforeClusterCreateRequest":  {"apiVersion", "cluster", "kind"},
		"BeforeClusterCreateResponse": {"retryAfterSeconds", "status"}, // RT-28: answers need not say what they are
	} {
		if d := cmp.Diff(want, doc.Components.Schemas[v1alpha1+name].Required); d != "" {
			t.Errorf("%s: required (-want +got):\n%s", name, d)
		}
	}
}

type oddRequest struct {
	hooksv1.DiscoveryRequest
	Odd odd `json:"odd"`
}

type odd struct{}

func (odd) MarshalJSON() ([]byte, error) { return []byte("3"), nil }

func (o *oddRequest) DeepCopyObject() runtime.Object { c := *o; return &c }

// RT-22, RT-25: several versions of a hook stand side by side, a deprecated one says so; a type that would be described
// wrongly is an error.
func TestOtherCatalogs(t *testing.T) {
	list := hooks.ClusterAPI()
	for i := range list {
		if list[i].ID.Hook == "BeforeClusterCreate" {
			list[i].Deprecation = &hooks.Deprecation{Since: hooks.Release{Minor: "v1.14", Date: "2026-08-01"}}
		}
	}
	c, err := hooks.New(list)
	if err != nil {
		t.Fatal(err)
	}
	deprecated := 0
	for _, item := range document(t, c, openapi.Info{}).Paths {
		if item.Post.Deprecated {
			deprecated++
		}
	}
	if deprecated != 1 {
		t.Errorf("%d hooks are deprecated", deprecated)
	}
	wrong, err := hooks.New([]hooks.Hook{{
		ID:         hooks.ID{Name: hooks.Name{Group: "hooks.runtime.example.org", Hook: "Odd"}, Version: "v1"},
		NewRequest: func() runtime.Object { return &oddRequest{} }, NewResponse: func() hooks.Response { return &hooksv1.DiscoveryResponse{} },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openapi.Document(wrong, openapi.Info{}); err == nil || !strings.Contains(err.Error(), "JSON form of its own") {
		t.Errorf("got %v", err)
	}
}
