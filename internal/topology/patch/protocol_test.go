package patch_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/topology/patch"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

const (
	generatePath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/gen"
	validatePath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/validatetopology/val"
)

// protocol is an extension, and what calls it as the topology controller does.
type protocol struct {
	t         *testing.T
	extension *hooktest.Extension
	client    hook.Client
	class     *clusterv1.ClusterClass
	item      patch.Item
}

func newProtocol(t *testing.T) protocol {
	t.Helper()
	x := hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("gen", "GeneratePatches"), hooktest.Raw(`{"status":"Success","items":[{"uid":"u","patchType":"JSONPatch","patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL3RlbXBsYXRlL3NwZWMvYSIsInZhbHVlIjoyfV0="}]}`))
	x.Handle(hooktest.Handler("val", "ValidateTopology"), hooktest.Raw(`{"status":"Success"}`))
	extensions, err := hook.New(hook.Config{NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := extensions.Discover(t.Context(), x.ExtensionConfig("ext")); err != nil {
		t.Fatal(err)
	}
	extensions.Prime()
	class := &clusterv1.ClusterClass{}
	class.Name = "c"
	class.Spec.Patches = []clusterv1.ClusterClassPatch{{Name: "p", External: &clusterv1.ExternalPatchDefinition{
		GeneratePatchesExtension: "gen.ext", ValidateTopologyExtension: "val.ext", Settings: map[string]string{"k": "v"},
	}}}
	return protocol{t: t, extension: x, client: extensions, class: class, item: patch.Item{
		UID: types.UID("u"), Role: patch.InfrastructureCluster, Holder: hooksv1.HolderReference{Kind: "Cluster", FieldPath: "spec.infrastructureRef"},
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "ClusterTemplate", "metadata": map[string]any{"name": "t"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"a": int64(1)}}},
		}},
	}}
}

// apply asks until there is nothing to ask.
func (p protocol) apply() (patch.Result, error) {
	p.t.Helper()
	program, err := patch.Compile(p.class)
	if err != nil {
		p.t.Fatal(err)
	}
	answers := patch.Responses{}
	for {
		result, questions, err := program.Apply(nil, []patch.Item{p.item}, answers)
		if err != nil || len(questions) == 0 {
			return result, err
		}
		for _, q := range questions {
			var response hooks.Response = &hooksv1.GeneratePatchesResponse{}
			if _, validates := q.Request.(*hooksv1.ValidateTopologyRequest); validates {
				response = &hooksv1.ValidateTopologyResponse{}
			}
			exchange := hook.Invocation{Request: q.Request, Response: response, CacheKey: q.Key, CacheTTL: time.Hour}
			if err := p.client.Call(p.t.Context(), &clusterv1.Cluster{}, q.Extension, exchange); err != nil {
				return nil, err
			}
			answers[q.Key] = response
		}
	}
}

// TestProtocol: an extension that answers with the bytes of the reference library changes a template, and is not asked again
// before something changes.
func TestProtocol(t *testing.T) { // TM-01, TM-02, TM-04, TM-05
	p := newProtocol(t)
	for range 3 {
		result, err := p.apply()
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedInt64(result["u"].Object, "spec", "template", "spec", "a"); got != 2 {
			t.Errorf("a is %d", got)
		}
	}
	generated, validated := p.extension.Bodies(generatePath), p.extension.Bodies(validatePath)
	if len(generated) != 1 || len(validated) != 1 {
		t.Fatalf("asked %d and %d times", len(generated), len(validated))
	}
	var request hooksv1.GeneratePatchesRequest
	if err := json.Unmarshal(generated[0], &request); err != nil {
		t.Fatal(err)
	}
	if request.Settings["k"] != "v" || request.Items[0].UID != "u" || !strings.Contains(string(request.Items[0].Object.Raw), `"apiVersion":"example.com/v1"`) {
		t.Errorf("request %s", generated[0])
	}
	if !strings.Contains(string(validated[0]), `"a":2`) {
		t.Errorf("the topology is checked before it is patched: %s", validated[0])
	}
	p.class.Spec.Patches[0].External.Settings["k"] = "w"
	if _, err := p.apply(); err != nil || len(p.extension.Bodies(generatePath)) != 2 {
		t.Errorf("asked %d times, %v", len(p.extension.Bodies(generatePath)), err)
	}
}

// TestProtocolFailure: what the extension says is in the message, with its name.
func TestProtocolFailure(t *testing.T) { // TM-02
	p := newProtocol(t)
	p.extension.Serve(validatePath, hooktest.Raw(`{"status":"Failure","message":"too many machines"}`))
	_, err := p.apply()
	if got := fault.UserMessage(err); !strings.Contains(got, "val.ext") || !strings.Contains(got, "too many machines") {
		t.Errorf("got %v", err)
	}
}
