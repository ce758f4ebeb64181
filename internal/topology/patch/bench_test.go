package patch

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// fleet is a class with 50 patches over 30 variables, and the items of a topology with 20 deployments.
func fleet(b *testing.B) (*clusterv1.ClusterClass, variables.Values, []Item) {
	b.Helper()
	class := &clusterv1.ClusterClass{}
	globals := variables.Values{}
	for i := range 30 {
		globals[fmt.Sprintf("v%d", i)] = apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"name":"value-%d","list":[1,2,3],"on":true}`, i)}
	}
	globals, err := globals.WithBuiltins(variables.ClusterBuiltins(&clusterv1.Cluster{}))
	if err != nil {
		b.Fatal(err)
	}
	for i := range 50 {
		change := clusterv1.JSONPatch{Op: "add", Path: fmt.Sprintf("/spec/template/spec/field%d", i)}
		switch i % 5 {
		case 0:
			change.Value = &apiextensionsv1.JSON{Raw: []byte(`"fixed"`)}
		case 1, 2:
			change.ValueFrom = &clusterv1.JSONPatchValue{Variable: fmt.Sprintf("v%d.name", i%30)}
		case 3:
			change.ValueFrom = &clusterv1.JSONPatchValue{Template: fmt.Sprintf("{{ .v%d.name | upper | quote }}", i%30)}
		case 4:
			change.ValueFrom = &clusterv1.JSONPatchValue{Template: `version: {{ .builtin.machineDeployment.version }}`}
		}
		patch := clusterv1.ClusterClassPatch{Name: fmt.Sprintf("p%d", i), Definitions: []clusterv1.PatchDefinition{{
			Selector: clusterv1.PatchSelector{APIVersion: "infrastructure.example.com/v1", Kind: "MachineTemplate", MatchResources: clusterv1.PatchSelectorMatch{
				MachineDeploymentClass: &clusterv1.PatchSelectorMatchMachineDeploymentClass{Names: []string{"*"}},
			}},
			JSONPatches: []clusterv1.JSONPatch{change},
		}}}
		if i%4 == 0 {
			patch.EnabledIf = fmt.Sprintf("{{ .v%d.on }}", i%30)
		}
		class.Spec.Patches = append(class.Spec.Patches, patch)
	}
	var items []Item
	for i := range 20 {
		workers := variables.Workers{Name: fmt.Sprintf("md-%d", i), TopologyName: fmt.Sprintf("md-%d", i), Class: "default", Version: "v1.36.3"}
		own, err := variables.Values{}.WithBuiltins(workers.DeploymentBuiltins())
		if err != nil {
			b.Fatal(err)
		}
		for kind, role := range map[string]Role{"MachineTemplate": DeploymentInfrastructure, "ConfigTemplate": DeploymentBootstrap} {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "infrastructure.example.com/v1", "kind": kind, "metadata": map[string]any{"name": "t"},
				"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"image": "x", "disks": []any{"a", "b"}}}},
			}}
			items = append(items, Item{UID: types.UID(fmt.Sprint(kind, i)), Role: role, Class: "default", Topology: workers.TopologyName, Object: object, Variables: own})
		}
	}
	return class, globals, items
}

// BenchmarkApply: 30 variables, 50 patches, 20 deployments.
func BenchmarkApply(b *testing.B) {
	class, globals, items := fleet(b)
	program, err := Compile(class)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := program.Apply(globals, items, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCompile: what the first use of a class costs.
func BenchmarkCompile(b *testing.B) {
	class, _, _ := fleet(b)
	for b.Loop() {
		if _, err := Compile(class); err != nil {
			b.Fatal(err)
		}
	}
}
