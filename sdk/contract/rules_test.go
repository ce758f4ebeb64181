package contract_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/sdk/contract"
)

type props = map[string]apiextensionsv1.JSONSchemaProps

func field(kind string, p props) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: kind, Properties: p}
}

func machineCRD(change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	schema := field("object", props{
		"spec": field("object", props{"providerID": field("string", nil)}),
		"status": field("object", props{
			"conditions": field("array", nil), "addresses": field("array", nil), "failureDomain": field("string", nil),
			"initialization": field("object", props{"provisioned": field("boolean", nil)}),
		}),
	})
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "foomachines.example.org", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.org", Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Kind: "FooMachine", ListKind: "FooMachineList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}}},
		},
	}
	change(crd)
	return crd
}

func TestRules(t *testing.T) { // CT-01, CT-04, CT-05, CT-06, IM-02
	type crd = apiextensionsv1.CustomResourceDefinition
	cases := map[string]struct {
		change func(*crd)
		broken string
	}{
		"keeps all":       {func(*crd) {}, ""},
		"cluster scoped":  {func(c *crd) { c.Spec.Scope = apiextensionsv1.ClusterScoped }, "Namespaced"},
		"version unknown": {func(c *crd) { c.Spec.Versions[0].Served = false }, "ContractLabel"},
		"wrong name":      {func(c *crd) { c.Name = "foomachine.example.org" }, "Name"},
		"no list":         {func(c *crd) { c.Spec.Names.ListKind = "" }, "ListKind"},
		"no provider ID":  {func(c *crd) { delete(c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "spec") }, "ProviderID"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			broken := ""
			for _, rule := range contract.Rules(contract.RoleInfraMachine) {
				if err := rule.Check(machineCRD(tc.change)); err != nil && rule.Mandatory {
					broken = rule.Name
					break
				}
			}
			if broken != tc.broken {
				t.Errorf("first broken mandatory rule: got %q, want %q", broken, tc.broken)
			}
		})
	}
}

// A control plane without Machines has to tell so; one that makes Machines need not.
func TestExternallyManaged(t *testing.T) {
	field := func(kind string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: kind}
	}
	within := func(name string, p apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{name: p}}
	}
	for name, tc := range map[string]struct {
		spec, status apiextensionsv1.JSONSchemaProps
		keeps        bool
	}{
		"says so":        {field("object"), within("externalManagedControlPlane", field("boolean")), true},
		"makes Machines": {within("machineTemplate", field("object")), field("object"), true},
		"says nothing":   {field("object"), field("object"), false},
		"says otherwise": {field("object"), within("externalManagedControlPlane", field("string")), false},
	} {
		crd := machineCRD(func(c *apiextensionsv1.CustomResourceDefinition) {
			c.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": tc.spec, "status": tc.status}
		})
		for _, rule := range contract.Rules(contract.RoleControlPlane) {
			if rule.Name == "ExternallyManaged" && (rule.Check(crd) == nil) != tc.keeps {
				t.Errorf("%s: %v, want kept %v", name, rule.Check(crd), tc.keeps)
			}
		}
	}
}
