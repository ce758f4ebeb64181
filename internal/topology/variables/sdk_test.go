package variables_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipwayhq/slipway/internal/topology/variables"
	"github.com/slipwayhq/slipway/sdk/extension/topology"
)

// RT-24: what the SDK makes of a struct is a definition that a class accepts, whatever its fields are.
func TestDefinitionsOfTheSDK(t *testing.T) {
	type nested struct {
		URL    string            `json:"url" required:"true" pattern:"^https?://" maxLength:"99"`
		Labels map[string]string `json:"labels"`
	}
	type all struct {
		Image    string               `json:"image" required:"true" description:"Image of all nodes." example:"1" default:"2"`
		Disks    int64                `json:"disks" default:"2" minimum:"1" maximum:"8"`
		Tier     string               `json:"tier" enum:"small,large" default:"small"`
		Share    float64              `json:"share" default:"0.5"`
		Count    uint16               `json:"count"`
		Debug    bool                 `json:"debug" default:"false"`
		Proxy    *nested              `json:"proxy" default:"{url: http://proxy}"`
		Proxies  []nested             `json:"proxies"`
		Servers  []string             `json:"servers" minItems:"1" maxItems:"3" default:"[a, b]" rule:"self.size() != 2" ruleMessage:"not two"`
		Window   metav1.Duration      `json:"window" default:"1m0s"`
		Memory   resource.Quantity    `json:"memory" default:"1Gi"`
		Port     intstr.IntOrString   `json:"port" default:"80"`
		Address  string               `json:"address" format:"ipv4" default:"192.0.2.1"`
		Key      []byte               `json:"key"`
		Anything any                  `json:"anything"`
		JSON     apiextensionsv1.JSON `json:"json"`
	}
	definitions, err := topology.Definitions[all]()
	if err != nil {
		t.Fatal(err)
	}
	problems := variables.ValidateDefinitions(definitions, nil, field.NewPath("spec", "variables"))
	if len(problems) != 1 || problems[0].Field != "spec.variables[8].schema.openAPIV3Schema.default" {
		t.Errorf("the default of servers breaks its rule, and nothing else is wrong: %v", problems)
	}
}
