package patch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// apply compiles and applies the patches of a class.
func apply(class *clusterv1.ClusterClass, globals variables.Values, items []Item, answers Responses) (Result, []ExtensionRequest, error) {
	program, err := Compile(class)
	if err != nil {
		return nil, nil, err
	}
	return program.Apply(globals, items, answers)
}

// classOf is a class with patches.
func classOf(t testing.TB, patches string) *clusterv1.ClusterClass {
	t.Helper()
	class := &clusterv1.ClusterClass{}
	class.Name = "c"
	if err := yaml.UnmarshalStrict([]byte(patches), &class.Spec.Patches); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"size", "labels", "zones", "unset"} {
		class.Status.Variables = append(class.Status.Variables, clusterv1.ClusterClassStatusVariable{Name: name,
			Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{From: clusterv1.VariableDefinitionFromInline}}})
	}
	class.Status.Variables = append(class.Status.Variables, clusterv1.ClusterClassStatusVariable{Name: "foreign",
		Definitions: []clusterv1.ClusterClassStatusVariableDefinition{{From: "another"}}})
	return class
}

func valuesOf(t testing.TB, text string) variables.Values {
	t.Helper()
	out := variables.Values{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// topology has an infrastructure cluster, a control plane with its machines, two deployments and a pool.
func topology(t testing.TB) (variables.Values, []Item) {
	t.Helper()
	globals := valuesOf(t, `{size: 3, labels: {a: b}, zones: [x, {name: why}], foreign: 1, builtin: {cluster: {name: c1, topology: {version: v1.36.3}}}}`)
	item := func(role Role, kind, class, name, own string) Item {
		return Item{
			UID: types.UID(string(role) + name), Role: role, Class: class, Topology: name, Variables: valuesOf(t, own),
			Holder: runtimehooksv1.HolderReference{Kind: "Holder", Name: name},
			Object: &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.com/v1", "kind": kind, "metadata": map[string]any{"name": strings.ToLower(kind)},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"list": []any{"one"}, "old": "value"}}},
			}},
		}
	}
	return globals, []Item{
		item(InfrastructureCluster, "ClusterTemplate", "", "", `{}`),
		item(ControlPlane, "PlaneTemplate", "", "", `{builtin: {controlPlane: {version: v1.36.3, replicas: 3}}}`),
		item(ControlPlaneMachines, "MachineTemplate", "", "", `{builtin: {controlPlane: {version: v1.36.3, replicas: 3}}}`),
		item(DeploymentInfrastructure, "MachineTemplate", "worker-big", "one", `{size: 9, builtin: {machineDeployment: {version: v1.35.4, topologyName: one}}}`),
		item(DeploymentInfrastructure, "MachineTemplate", "gpu", "two", `{builtin: {machineDeployment: {version: v1.36.3, topologyName: two}}}`),
		item(PoolInfrastructure, "PoolTemplate", "worker-pool", "pool", `{builtin: {machinePool: {version: v1.36.3, topologyName: pool}}}`),
	}
}

// changesOf says what of the spec of each item differs from before.
func changesOf(items []Item, result Result) map[string]any {
	out := map[string]any{}
	for _, item := range items {
		before, _, _ := unstructured.NestedMap(item.Object.Object, "spec", "template", "spec")
		after, _, _ := unstructured.NestedMap(result[item.UID].Object, "spec", "template", "spec")
		for name := range before {
			if _, stays := after[name]; !stays {
				out[item.Topology+string(item.Role)+" "+name] = "(removed)"
			}
		}
		for name, value := range after {
			if !cmp.Equal(before[name], value) {
				out[strings.TrimSpace(item.Topology+" "+string(item.Role))+": "+name] = value
			}
		}
	}
	return out
}

const (
	onMachines = `{apiVersion: example.com/v1, kind: MachineTemplate, matchResources: {controlPlane: true, machineDeploymentClass: {names: ["*"]}}}`
	onGPU      = `{apiVersion: example.com/v1, kind: MachineTemplate, matchResources: {machineDeploymentClass: {names: [gpu]}}}`
	ofGPU      = "two infrastructure of the MachineDeployment: "
	ofBig      = "one infrastructure of the MachineDeployment: "
	ofMachines = "machines of the control plane: "
)

func one(selector, change string) string {
	return fmt.Sprintf("[{name: p, definitions: [{selector: %s, jsonPatches: [%s]}]}]", selector, change)
}

func TestInline(t *testing.T) { // TP-13
	for name, c := range map[string]struct {
		patches string
		want    map[string]any
		reason  string
	}{
		"a value": {
			patches: one(onGPU, `{op: add, path: /spec/template/spec/new, value: {a: 1}}`),
			want:    map[string]any{ofGPU + "new": map[string]any{"a": int64(1)}}, reason: "only the selected item changes",
		},
		"missing parents": {
			patches: one(onGPU, `{op: add, path: /spec/template/spec/a/b/-, value: x}`),
			want:    map[string]any{ofGPU + "a": map[string]any{"b": []any{"x"}}}, reason: "adding creates what is on the way",
		},
		"prepend": {
			patches: one(onGPU, `{op: add, path: /spec/template/spec/list/0, value: x}`),
			want:    map[string]any{ofGPU + "list": []any{"x", "one"}},
		},
		"append": {
			patches: one(onGPU, `{op: add, path: /spec/template/spec/list/-, value: x}`),
			want:    map[string]any{ofGPU + "list": []any{"one", "x"}},
		},
		"replace": {
			patches: one(onGPU, `{op: replace, path: /spec/template/spec/old, value: new}`),
			want:    map[string]any{ofGPU + "old": "new"},
		},
		"remove": {
			patches: one(onGPU, `{op: remove, path: /spec/template/spec/old}`),
			want:    map[string]any{"twoinfrastructure of the MachineDeployment old": "(removed)"},
		},
		"a variable with an override": {
			patches: one(onMachines, `{op: add, path: /spec/template/spec/n, valueFrom: {variable: size}}`),
			want:    map[string]any{ofMachines + "n": int64(3), ofBig + "n": int64(9), ofGPU + "n": int64(3)},
			reason:  "the override of a deployment wins for its templates",
		},
		"a part of a variable": {
			patches: one(onGPU, `{op: add, path: /spec/template/spec/n, valueFrom: {variable: "zones[1].name"}}`),
			want:    map[string]any{ofGPU + "n": "why"},
		},
		"builtins of all and of the item": {
			patches: one(onGPU, `{op: add, path: /spec/template/spec/n, valueFrom: {template: "{{ .builtin.cluster.name }}-{{ .builtin.machineDeployment.topologyName }}"}}`),
			want:    map[string]any{ofGPU + "n": "c1-two"}, reason: "the parts of the builtin variable are merged",
		},
		"a template with YAML": {
			patches: one(onMachines, `{op: add, path: /spec/template/spec/n, valueFrom: {template: "num: {{ .size }}\nl:\n{{ range .labels | keys }}- {{ . | quote }}\n{{ end }}"}}`),
			want: map[string]any{
				ofMachines + "n": map[string]any{"num": int64(3), "l": []any{"a"}}, ofBig + "n": map[string]any{"num": int64(9), "l": []any{"a"}},
				ofGPU + "n": map[string]any{"num": int64(3), "l": []any{"a"}},
			},
			reason: "a template is evaluated again where an item has a value of its own",
		},
		"a template over everything": {
			patches: one(onMachines, `{op: add, path: /spec/template/spec/n, valueFrom: {template: "{{ (index . \"size\") }}"}}`),
			want:    map[string]any{ofMachines + "n": int64(3), ofBig + "n": int64(9), ofGPU + "n": int64(3)}, reason: "what is read cannot be told from the text",
		},
		"disabled": {
			patches: `[{name: p, enabledIf: "{{ eq .size 4 }}", definitions: [{selector: ` + onGPU + `, jsonPatches: [{op: remove, path: /spec/template/spec/old}]}]}]`,
			want:    map[string]any{},
		},
		"enabled for some": {
			patches: `[{name: p, enabledIf: "{{ gt .size 4.0 }}", definitions: [{selector: ` + onMachines + `, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: x}]}]}]`,
			want:    nil, reason: "comparing an integer with a float is an error of the template",
		},
		"enabled by the item": {
			patches: `[{name: p, enabledIf: "{{ if .builtin.machineDeployment }}{{ semverCompare \"<1.36\" .builtin.machineDeployment.version }}{{ end }}", definitions: [{selector: ` + onMachines + `, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: x}]}]}]`,
			want:    map[string]any{ofBig + "old": "x"},
		},
		"enabled by a variable without a value": {
			patches: `[{name: p, enabledIf: "{{ .unset }}", definitions: [{selector: ` + onGPU + `, jsonPatches: [{op: remove, path: /spec/template/spec/old}]}]}]`,
			want:    map[string]any{}, reason: "what has no value does not enable",
		},
		"order": {
			patches: `[{name: p, definitions: [{selector: ` + onGPU + `, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: first}, {op: replace, path: /spec/template/spec/old, value: second}]}]},` +
				`{name: q, definitions: [{selector: ` + onGPU + `, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: third}]}]}]`,
			want: map[string]any{ofGPU + "old": "third"}, reason: "patches apply in the order of the array",
		},
		"names with a star": {
			patches: `[{name: p, definitions: [` +
				`{selector: {apiVersion: example.com/v1, kind: MachineTemplate, matchResources: {machineDeploymentClass: {names: ["worker-*"]}}}, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: start}]},` +
				`{selector: {apiVersion: example.com/v1, kind: PoolTemplate, matchResources: {machinePoolClass: {names: ["*-pool"]}}}, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: end}]}]}]`,
			want: map[string]any{ofBig + "old": "start", "pool infrastructure of the MachinePool: old": "end"},
		},
		"another version of the kind": {
			patches: one(strings.Replace(onGPU, "/v1", "/v2", 1), `{op: remove, path: /spec/template/spec/old}`), want: map[string]any{},
		},
		"cluster and control plane": {
			patches: `[{name: p, definitions: [` +
				`{selector: {apiVersion: example.com/v1, kind: ClusterTemplate, matchResources: {infrastructureCluster: true}}, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: i}]},` +
				`{selector: {apiVersion: example.com/v1, kind: PlaneTemplate, matchResources: {controlPlane: true}}, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: c}]}]}]`,
			want: map[string]any{"infrastructure cluster: old": "i", "control plane: old": "c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			globals, items := topology(t)
			result, questions, err := apply(classOf(t, c.patches), globals, items, nil)
			if c.want == nil {
				if err == nil {
					t.Fatalf("no error (%s)", c.reason)
				}
				return
			}
			if err != nil || len(questions) > 0 {
				t.Fatal(questions, err)
			}
			if diff := cmp.Diff(c.want, changesOf(items, result)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
			_, untouched := topology(t)
			if diff := cmp.Diff(untouched, items); diff != "" {
				t.Errorf("the items that were given changed: %s", diff)
			}
		})
	}
}

func TestInlineRefuses(t *testing.T) { // TP-13, TP-14
	prefix := "Patch p of ClusterClass c cannot be applied to MachineTemplate machinetemplate (infrastructure of the MachineDeployment two): "
	for name, c := range map[string]struct{ patches, want string }{
		"a path that is closed":        {one(onGPU, `{op: add, path: /spec/foo, value: x}`), prefix + "/spec/foo cannot be changed: patches may change only /spec/template/spec, labels and annotations"},
		"the kind":                     {one(onGPU, `{op: replace, path: /kind, value: x}`), prefix + "/kind cannot be changed: patches may change only /spec/template/spec, labels and annotations"},
		"a field that is missing":      {one(onGPU, `{op: replace, path: /spec/template/spec/nothing, value: x}`), prefix + `replace /spec/template/spec/nothing: field "nothing" does not exist`},
		"removal of a missing field":   {one(onGPU, `{op: remove, path: /spec/template/spec/a/b}`), prefix + `remove /spec/template/spec/a/b: field "a" does not exist`},
		"a string that should contain": {one(onGPU, `{op: add, path: /spec/template/spec/old/b, value: x}`), prefix + `add /spec/template/spec/old/b: the parent of "b" is neither an object nor an array`},
		"no value":                     {one(onGPU, `{op: add, path: /spec/template/spec/n, valueFrom: {variable: unset}}`), prefix + "the value for /spec/template/spec/n: variable unset has no value; set it, or disable the patch without it by enabledIf"},
		"a part of a number":           {one(onGPU, `{op: add, path: /spec/template/spec/n, valueFrom: {variable: size.x}}`), prefix + "the value for /spec/template/spec/n: size is not an object, size.x cannot be read from it"},
		"no value in a template":       {one(onGPU, `{op: add, path: /spec/template/spec/n, valueFrom: {template: "a-{{ .unset }}"}}`), prefix + "the value for /spec/template/spec/n: the template prints a variable without a value; set the variable, or disable the patch without it by enabledIf"},
		"labels that are no strings":   {one(onGPU, `{op: add, path: /metadata/labels, value: {a: 1}}`), `The patches of ClusterClass c make /metadata/labels of MachineTemplate machinetemplate (infrastructure of the MachineDeployment two) invalid`},
		"a spec that is no object":     {one(onGPU, `{op: replace, path: /spec/template/spec, value: 1}`), `The patches of ClusterClass c make /spec/template/spec of MachineTemplate machinetemplate (infrastructure of the MachineDeployment two) invalid`},
		"a template that is none":      {one(onGPU, `{op: add, path: /spec/template/spec/n, valueFrom: {template: "{{ .a"}}`), "Patch p of ClusterClass c cannot be used: the value for /spec/template/spec/n"},
	} {
		t.Run(name, func(t *testing.T) {
			globals, items := topology(t)
			_, _, err := apply(classOf(t, c.patches), globals, items, nil)
			if err == nil || !strings.HasPrefix(fault.UserMessage(err), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("kind %s", fault.KindOf(err))
			}
		})
	}
}

// answerAll applies the patches, and answers each question by its extension.
func answerAll(t *testing.T, class *clusterv1.ClusterClass, answers map[string]runtimehooksv1.ResponseObject) (Result, []Item, []ExtensionRequest, error) {
	t.Helper()
	globals, items := topology(t)
	known := Responses{}
	var asked []ExtensionRequest
	for range 10 {
		result, questions, err := apply(class, globals, items, known)
		if err != nil || len(questions) == 0 {
			return result, items, asked, err
		}
		for _, q := range questions {
			asked = append(asked, q)
			known[q.Key] = answers[q.Extension]
		}
	}
	t.Fatal("the questions do not end")
	return nil, nil, nil, nil
}

func generated(uid types.UID, patchType runtimehooksv1.PatchType, patches ...string) *runtimehooksv1.GeneratePatchesResponse {
	out := &runtimehooksv1.GeneratePatchesResponse{}
	for _, p := range patches {
		out.Items = append(out.Items, runtimehooksv1.GeneratePatchesResponseItem{UID: uid, PatchType: patchType, Patch: []byte(p)})
	}
	return out
}

const twoExternal = `[{name: p, external: {generatePatchesExtension: gen.ext, validateTopologyExtension: val.ext, settings: {k: v}}},` +
	`{name: q, external: {generatePatchesExtension: second.ext}}, {name: r, external: {discoverVariablesExtension: d.ext}}]`

func TestExternal(t *testing.T) { // TP-15, TM-01, TM-02, TM-06
	uid := types.UID(string(DeploymentInfrastructure) + "two")
	result, items, asked, err := answerAll(t, classOf(t, twoExternal), map[string]runtimehooksv1.ResponseObject{
		"gen.ext": generated(uid, runtimehooksv1.JSONPatchType, `[{"op":"replace","path":"/spec/template/spec/old","value":"a"}]`,
			"", "null", "[]", "{}", `[{"op":"add","path":"/metadata/labels/x","value":"y"}]`),
		"second.ext": generated(uid, runtimehooksv1.JSONMergePatchType, `{"spec":{"template":{"spec":{"more":{"n":1}}}}}`),
		"val.ext":    &runtimehooksv1.ValidateTopologyResponse{},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{ofGPU + "old": "a", ofGPU + "more": map[string]any{"n": int64(1)}}
	if diff := cmp.Diff(want, changesOf(items, result)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := result[uid].GetLabels(); got["x"] != "y" {
		t.Errorf("labels %v", got)
	}
	var names []string
	for _, q := range asked {
		names = append(names, q.String())
	}
	if diff := cmp.Diff([]string{
		"patches by extension gen.ext of patch p", "patches by extension second.ext of patch q",
		"validation of the topology by extension val.ext of patch p",
	}, names); diff != "" {
		t.Errorf("questions (-want +got)\n%s", diff)
	}
	first := asked[0].Request.(*runtimehooksv1.GeneratePatchesRequest)
	var sent []string
	for _, v := range first.Variables {
		sent = append(sent, v.Name)
	}
	if diff := cmp.Diff([]string{"builtin", "labels", "size", "zones"}, sent); diff != "" {
		t.Errorf("variables: those of another patch are not sent (-want +got)\n%s", diff)
	}
	if first.Settings["k"] != "v" || len(first.Items) != len(items) || first.Items[4].HolderReference.Name != "two" {
		t.Errorf("request %+v", first)
	}
	second := asked[1].Request.(*runtimehooksv1.GeneratePatchesRequest)
	if !strings.Contains(string(second.Items[4].Object.Raw), `"old":"a"`) {
		t.Errorf("the second extension does not see what the first changed: %s", second.Items[4].Object.Raw)
	}
	validation, err := json.Marshal(asked[2].Request)
	if err != nil || !strings.Contains(string(validation), `"more":{"n":1}`) || strings.Contains(string(validation), `"uid":"`+string(uid)) {
		t.Errorf("validation %s %v", validation, err)
	}
}

func TestSameInputIsOneQuestion(t *testing.T) { // TM-05
	globals, items := topology(t)
	class := classOf(t, twoExternal)
	_, first, err := apply(class, globals, items, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := apply(class, globals, items, nil)
	if err != nil || first[0].Key != second[0].Key {
		t.Errorf("the same input has the keys %s and %s (%v)", first[0].Key, second[0].Key, err)
	}
	globals["size"] = valuesOf(t, "{size: 4}")["size"]
	_, changed, err := apply(class, globals, items, nil)
	if err != nil || changed[0].Key == first[0].Key {
		t.Errorf("another input has the same key (%v)", err)
	}
}

func TestExternalRefuses(t *testing.T) { // TM-01: a wrong answer names the extension, the item and the path
	uid := types.UID(string(DeploymentInfrastructure) + "two")
	prefix := "Extension gen.ext of patch p: "
	item := "MachineTemplate machinetemplate (infrastructure of the MachineDeployment two), item 0 of its response: "
	only := ", but patches may change only /spec/template/spec, labels and annotations; correct the extension"
	for name, c := range map[string]struct {
		answer *runtimehooksv1.GeneratePatchesResponse
		want   string
	}{
		"another item":     {generated("nobody", runtimehooksv1.JSONPatchType, `[{}]`), prefix + `item 0 of its response has uid "nobody", which no template in the request has; correct the extension`},
		"the name":         {generated(uid, runtimehooksv1.JSONPatchType, `[{"op":"replace","path":"/metadata/name","value":"x"}]`), prefix + item + "the patch changes /metadata/name" + only},
		"the kind, merged": {generated(uid, runtimehooksv1.JSONMergePatchType, `{"kind":"x"}`), prefix + item + "the patch changes /kind" + only},
		"a status":         {generated(uid, runtimehooksv1.JSONMergePatchType, `{"status":{"x":1}}`), prefix + item + "the patch changes /status" + only},
		"beside the spec":  {generated(uid, runtimehooksv1.JSONMergePatchType, `{"spec":{"other":1}}`), prefix + item + "the patch changes /spec/other" + only},
		"the name of what is made": {generated(uid, runtimehooksv1.JSONMergePatchType, `{"spec":{"template":{"metadata":{"name":"x"}}}}`),
			prefix + item + "the patch changes /spec/template/metadata/name" + only},
		"the whole spec":    {generated(uid, runtimehooksv1.JSONPatchType, `[{"op":"replace","path":"/spec","value":"x"}]`), prefix + item + "the patch changes /spec" + only},
		"no such type":      {generated(uid, "Strategic", `{"a":1}`), prefix + item + `patch type "Strategic" is unknown: use JSONPatch or JSONMergePatch; correct the extension`},
		"not a patch":       {generated(uid, runtimehooksv1.JSONPatchType, `{"a":1}`), prefix + item + "the patch cannot be read: "},
		"an index too high": {generated(uid, runtimehooksv1.JSONPatchType, `[{"op":"add","path":"/spec/template/spec/x/1000000000","value":1}]`), prefix + item + "the patch has index 1000000000 in a path, at most 10000 can be used; correct the extension"},
		"no object left":    {generated(uid, runtimehooksv1.JSONMergePatchType, `[1]`), prefix + item + "the result of the patch is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := answerAll(t, classOf(t, twoExternal), map[string]runtimehooksv1.ResponseObject{"gen.ext": c.answer})
			if err == nil || !strings.HasPrefix(fault.UserMessage(err), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestExternalAfterInline(t *testing.T) { // TP-15
	patches := `[{name: a, definitions: [{selector: ` + onGPU + `, jsonPatches: [{op: replace, path: /spec/template/spec/old, value: inline}]}]},` +
		`{name: p, external: {generatePatchesExtension: gen.ext}}, ` +
		`{name: z, definitions: [{selector: ` + onGPU + `, jsonPatches: [{op: add, path: /spec/template/spec/seen, value: last}]}]}]`
	uid := types.UID(string(DeploymentInfrastructure) + "two")
	result, items, asked, err := answerAll(t, classOf(t, patches), map[string]runtimehooksv1.ResponseObject{
		"gen.ext": generated(uid, runtimehooksv1.JSONPatchType, `[{"op":"test","path":"/spec/template/spec/old","value":"inline"},{"op":"add","path":"/spec/template/spec/seen","value":"first"}]`),
	})
	if err != nil || len(asked) != 1 {
		t.Fatal(asked, err)
	}
	if diff := cmp.Diff(map[string]any{ofGPU + "old": "inline", ofGPU + "seen": "last"}, changesOf(items, result)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
