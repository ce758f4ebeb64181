package topology_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension/topology"
)

// roles are templates of one kind, in all the places that a template may be used in.
func roles() []hooksv1.GeneratePatchesRequestItem {
	const core = "cluster.x-k8s.io/v1beta2"
	held := func(uid, apiVersion, kind, field string, builtin ...hooksv1.Variable) hooksv1.GeneratePatchesRequestItem {
		i := item(uid, "MachineTemplate", uid, builtin...)
		i.HolderReference.APIVersion, i.HolderReference.Kind, i.HolderReference.FieldPath = apiVersion, kind, field
		return i
	}
	class := func(workers, name string) hooksv1.Variable {
		return variable("builtin", `{"`+workers+`":{"class":"`+name+`"}}`)
	}
	return []hooksv1.GeneratePatchesRequestItem{
		held("infra", core, "Cluster", "spec.infrastructureRef"),
		held("plane", core, "Cluster", "spec.controlPlaneRef"),
		held("plane-machines", "controlplane.example.org/v1", "ExamplePlane", "spec.machineTemplate.spec.infrastructureRef"),
		held("small", core, "MachineDeployment", "spec.template.spec.infrastructureRef", class("machineDeployment", "small-nodes")),
		held("large", core, "MachineDeployment", "spec.template.spec.bootstrap.configRef", class("machineDeployment", "large-nodes")),
		held("no-class", core, "MachineDeployment", "spec.template.spec.infrastructureRef"),
		held("pool", core, "MachinePool", "spec.template.spec.infrastructureRef", class("machinePool", "small-nodes")),
		held("namesake", "controlplane.example.org/v1", "MachineDeployment", "spec.infrastructureRef"),
	}
}

// RT-24: a rule is for the places that its selectors pick, as matchResources does.
func TestWhere(t *testing.T) {
	cases := map[string]struct {
		reason string
		where  []topology.Selector
		want   []string
	}{
		"none":              {"without a selector it is for all", nil, []string{"infra", "plane", "plane-machines", "small", "large", "no-class", "pool", "namesake"}},
		"infrastructure":    {"of the Cluster", []topology.Selector{topology.InfrastructureCluster()}, []string{"infra"}},
		"control plane":     {"itself and its machines, whatever its kind is called", []topology.Selector{topology.ControlPlane()}, []string{"plane", "plane-machines", "namesake"}},
		"class":             {"by its name", []topology.Selector{topology.MachineDeploymentClass("small-nodes")}, []string{"small"}},
		"classes":           {"one of several", []topology.Selector{topology.MachineDeploymentClass("x", "large-nodes")}, []string{"large"}},
		"ends with":         {"a star in front", []topology.Selector{topology.MachineDeploymentClass("*-nodes")}, []string{"small", "large"}},
		"begins with":       {"a star behind", []topology.Selector{topology.MachineDeploymentClass("lar*")}, []string{"large"}},
		"all classes":       {"a star alone", []topology.Selector{topology.MachineDeploymentClass("*")}, []string{"small", "large"}},
		"pools":             {"are not MachineDeployments", []topology.Selector{topology.MachinePoolClass("*")}, []string{"pool"}},
		"one of":            {"selectors add up", []topology.Selector{topology.InfrastructureCluster(), topology.MachinePoolClass("small-nodes")}, []string{"infra", "pool"}},
		"function of one's": {"any function", []topology.Selector{func(t topology.Template) bool { return t.Holder.Name == "large" }}, []string{"large"}},
		"empty":             {"no selector picks nothing", []topology.Selector{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			rule := topology.ForUnstructured("infrastructure.example.org/v1", "MachineTemplate",
				func(_ context.Context, t topology.Template, _ *unstructured.Unstructured) error {
					got = append(got, t.UID)
					return nil
				})
			if tc.where != nil {
				rule = rule.Where(tc.where...)
			}
			out := &hooksv1.GeneratePatchesResponse{}
			topology.Patcher{Rules: []topology.Rule{rule}, Strict: true}.Generate(t.Context(), &hooksv1.GeneratePatchesRequest{Items: roles()}, out)
			if d := cmp.Diff(tc.want, got); d != "" || out.Status == hooksv1.ResponseStatusFailure {
				t.Errorf("%s (-want +got):\n%s%s", tc.reason, d, out.Message)
			}
		})
	}
}

// RT-24: a patch is made for the templates that are picked only.
func TestWherePatches(t *testing.T) {
	rule := topology.For("infrastructure.example.org/v1", "MachineTemplate", func(_ context.Context, _ topology.Template, m *template) error {
		m.Spec.Template.Spec.Image = "new"
		return nil
	}).Where(topology.ControlPlane())
	out := &hooksv1.GeneratePatchesResponse{}
	topology.Patcher{Rules: []topology.Rule{rule}}.Generate(t.Context(), &hooksv1.GeneratePatchesRequest{Items: roles()[:4]}, out)
	var got []types.UID
	for _, i := range out.Items {
		got = append(got, i.UID)
	}
	if d := cmp.Diff([]types.UID{"plane", "plane-machines"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
