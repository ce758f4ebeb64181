package variables

import (
	"encoding/json"
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Values holds the variables of one scope by name, as the patches of a class read them; the builtin variable has the
// name "builtin". Package topology creates them, and package patch reads them.
type Values map[string]apiextensionsv1.JSON

// FromTopology returns the values of a list of variables in spec.topology. Package topology calls it for the Cluster
// and for the overrides of each template.
func FromTopology(list []clusterv1.ClusterVariable) Values {
	return Values{}.Overlay(list)
}

// Overlay returns the values with the overrides applied. The receiver is not changed.
func (v Values) Overlay(overrides []clusterv1.ClusterVariable) Values {
	out := make(Values, len(v)+len(overrides))
	maps.Copy(out, v)
	for _, o := range overrides {
		out[o.Name] = o.Value
	}
	return out
}

// WithBuiltins returns the values with the builtin variable. The receiver is not changed. Package topology calls it for
// the Cluster and for each template.
func (v Values) WithBuiltins(b runtimehooksv1.Builtins) (Values, error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encoding the builtin variable: %w", err)
	}
	return v.Overlay([]clusterv1.ClusterVariable{{Name: runtimehooksv1.BuiltinsName, Value: apiextensionsv1.JSON{Raw: raw}}}), nil
}

// Decode returns the values as JSON objects, arrays, strings, numbers (int64 and float64) and booleans. Package patch
// calls it, and the webhook of ClusterClasses.
func (v Values) Decode() (map[string]any, error) {
	out := make(map[string]any, len(v))
	for name, value := range v {
		decoded, err := decode(value)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		out[name] = decoded
	}
	return out, nil
}

func decode(value apiextensionsv1.JSON) (any, error) {
	var out any
	if err := utiljson.Unmarshal(value.Raw, &out); err != nil {
		return nil, fmt.Errorf("the value is not JSON: %w", err)
	}
	return out, nil
}

// Merge returns the variables of one template: global variables overridden by the variables of the template. The
// builtin variable is merged. Package patch calls it.
func Merge(global, own map[string]any) map[string]any {
	out := make(map[string]any, len(global)+len(own))
	maps.Copy(out, global)
	maps.Copy(out, own)
	all, isObject := global[runtimehooksv1.BuiltinsName].(map[string]any)
	parts, isObjectToo := own[runtimehooksv1.BuiltinsName].(map[string]any)
	if isObject && isObjectToo {
		merged := maps.Clone(all)
		maps.Copy(merged, parts)
		out[runtimehooksv1.BuiltinsName] = merged
	}
	return out
}
