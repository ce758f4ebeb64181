package topology

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// DiscoverVariables handles the hook DiscoverVariables with the fields of a struct; see [Definitions]:
//
//	type variables struct {
//		Image string `json:"image" required:"true" description:"Image of all nodes."`
//		Disks int64  `json:"disks" default:"1" minimum:"1" maximum:"8"`
//		Tier  string `json:"tier" enum:"small,large" default:"small"`
//	}
//
//	extension.OnErr("variables", hooksv1.DiscoverVariables, topology.DiscoverVariables[variables])
//
// [Read] reads the variables in a rule.
func DiscoverVariables[T any](_ context.Context, _ *hooksv1.DiscoverVariablesRequest, out *hooksv1.DiscoverVariablesResponse) error {
	var err error
	out.Variables, err = Definitions[T]()
	return err
}

// Definitions returns the variables of a ClusterClass, with their schemas, for the exported fields of a struct. The
// names of variables, and of fields in them, are the JSON names. The following tags are supported:
//
//	required      "true": a value is required
//	description   text for users
//	default       default value: a string as it is, other types in YAML or JSON
//	example       example value, in the same format
//	enum          allowed values, separated by commas
//	minimum, maximum                for numbers
//	minLength, maxLength, pattern   for strings
//	minItems, maxItems              for lists
//	format        such as "ipv4"
//	rule, ruleMessage               a CEL rule, and its message
//
// A field may be a string, a bool, a number, a struct, a list, a map with string keys, a pointer to one of these, an
// interface or JSON of any form, or a type that defines its JSON type as Kubernetes types do (metav1.Duration,
// resource.Quantity, intstr.IntOrString). The error lists every field with another type or invalid tags.
func Definitions[T any]() ([]clusterv1.ClusterClassVariable, error) {
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("variables are the fields of a struct, not of %s", t)
	}
	var out []clusterv1.ClusterClassVariable
	var problems []error
	for _, f := range jsonFields(t) {
		schema, err := f.schema(nil)
		if f.name == hooksv1.BuiltinsName || strings.ContainsAny(f.name, ".[]") {
			err = errors.Join(err, fmt.Errorf("%s: a variable cannot have the name %q", f.of, f.name))
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out = append(out, clusterv1.ClusterClassVariable{
			Name: f.name, Required: &f.required, Schema: clusterv1.VariableSchema{OpenAPIV3Schema: schema},
		})
	}
	return out, errors.Join(problems...)
}

// Read reads variables into the fields of a struct as in [Definitions]. A variable without a value leaves its field at
// the zero value. Variables without a field are ignored. It joins the errors of [Get].
func Read[T any](v Variables) (T, error) {
	var out T
	target := reflect.ValueOf(&out).Elem()
	if target.Kind() != reflect.Struct {
		return out, fmt.Errorf("variables are read into a struct, not into %T", out)
	}
	var problems []error
	for _, f := range jsonFields(target.Type()) {
		if _, ok := v.values[f.name]; !ok {
			continue
		}
		raw, err := v.Lookup(f.name)
		if err == nil {
			err = unmarshal(raw, f.name, f.in(target).Addr().Interface())
		}
		if err != nil && !IsNotFound(err) {
			problems = append(problems, err)
		}
	}
	return out, errors.Join(problems...)
}
