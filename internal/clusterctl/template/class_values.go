package template

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/topology/variables"
)

// Values parses the --set flags of "slipway create cluster": values written as NAME=VALUE, or as NAME.FIELD=VALUE for a
// field of an object. A value is YAML, unless the schema requires a string. The variables are in the order of their
// first occurrence; further fields of a variable are added to it.
func (c Class) Values(settings []string) ([]clusterv1.ClusterVariable, error) {
	values, names := map[string]any{}, []string{}
	for _, setting := range settings {
		path, text, ok := strings.Cut(setting, "=")
		if !ok || path == "" {
			return nil, invalidVariableError("--set %q is not of the form NAME=VALUE", setting)
		}
		fields := strings.Split(path, ".")
		definition := c.variable(fields[0])
		if definition == nil {
			return nil, c.unknownVariableError(fields[0])
		}
		value, err := read(text, schemaOf(definition, fields[1:]))
		if err != nil {
			return nil, invalidVariableError("--set %s: %v", path, err)
		}
		if !slices.Contains(names, fields[0]) {
			names = append(names, fields[0])
		}
		if err := unstructured.SetNestedField(values, value, fields...); err != nil {
			return nil, invalidVariableError("--set %s: a value is already set for its parent", path)
		}
	}
	var given []clusterv1.ClusterVariable
	for _, name := range names {
		raw, err := json.Marshal(values[name])
		if err != nil {
			return nil, fmt.Errorf("encoding variable %s: %w", name, err)
		}
		given = append(given, clusterv1.ClusterVariable{Name: name, Value: apiextensionsv1.JSON{Raw: raw}})
	}
	return given, c.validateVariables(given)
}

// validateVariables validates the variables as the API server does for a Cluster of the class.
func (c Class) validateVariables(given []clusterv1.ClusterVariable) error {
	topology := &clusterv1.Topology{Variables: slices.Clone(given)}
	definitions := variables.NewDefinitions(c.Definitions())
	definitions.Default(topology)
	if problems := definitions.Validate(topology, nil, field.NewPath("spec", "topology")); len(problems) > 0 {
		return invalidVariableError("the variables are not valid for ClusterClass %q: %v; set variables with --set NAME=VALUE", c.Name, problems.ToAggregate())
	}
	return nil
}

// read parses a value of the type in the schema; an empty type accepts any value.
func read(text, kind string) (any, error) {
	if kind == "string" {
		return text, nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("%q is not valid YAML: %w", text, err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, err
	}
	return convertIntegers(value), nil
}

// convertIntegers converts integral numbers to int64, the representation in unstructured objects.
func convertIntegers(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = convertIntegers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = convertIntegers(v[k])
		}
	}
	return value
}

// schemaOf returns the type of a field of a variable in the schema.
func schemaOf(definition *clusterv1.ClusterClassStatusVariable, fields []string) string {
	if len(definition.Definitions) == 0 {
		return ""
	}
	schema := definition.Definitions[0].Schema.OpenAPIV3Schema
	for _, field := range fields {
		next, ok := schema.Properties[field]
		if !ok && schema.AdditionalProperties != nil {
			next = *schema.AdditionalProperties
		}
		schema = next
	}
	return schema.Type
}

// unknownVariableError returns an error that lists the variables of the class.
func (c Class) unknownVariableError(name string) error {
	var names []string
	for _, d := range c.Definitions() {
		names = append(names, d.Name)
	}
	if len(names) == 0 {
		return invalidVariableError("ClusterClass %q has no variable %q; it has no variables", c.Name, name)
	}
	return invalidVariableError("ClusterClass %q has no variable %q; its variables are: %s", c.Name, name, strings.Join(names, ", "))
}

func invalidVariableError(message string, args ...any) error {
	return fault.New(fault.Invalid, reasonVariable, "%s", fmt.Sprintf(message, args...))
}
