package crdschema

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const schema = `
type: object
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    required: [size]
    properties:
      size: {type: integer, minimum: 1, default: 3}
      mode: {type: string, enum: [a, b]}
      fixed: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: is fixed}]}
      names: {type: array, items: {type: string}, x-kubernetes-list-type: set}
      pairs:
        type: array
        items: {type: string}
        x-kubernetes-validations: [{rule: "self.all(x, self.exists_one(y, x == y))", message: are unique}]
`

func newSchema(t *testing.T) *Schema {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(schema), props); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props}}, {Name: "v0"},
	}
	return New(crd, "v1")
}

type spec = map[string]any

func object(s spec) map[string]any {
	return map[string]any{"apiVersion": "example.org/v1", "kind": "A", "metadata": map[string]any{"name": "a"}, "spec": s}
}

func list(names ...any) []any { return names }

func fields(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Field)
	}
	slices.Sort(out)
	return out
}

func TestSchema(t *testing.T) {
	s := newSchema(t)
	for name, tc := range map[string]struct {
		reason       string
		spec, old    spec
		shape, rules []string
	}{
		"good":            {"", spec{"size": int64(1), "mode": "a", "names": list("x", "y"), "pairs": list("x", "y")}, nil, nil, nil},
		"shape":           {"", spec{"size": int64(0), "mode": "c"}, nil, []string{"spec.mode", "spec.size"}, nil},
		"missing":         {"", spec{}, nil, []string{"spec.size"}, nil},
		"set":             {"", spec{"size": int64(1), "names": list("x", "x")}, nil, []string{"spec.names[1]"}, nil},
		"rule":            {"", spec{"size": int64(1), "pairs": list("x", "x")}, nil, nil, []string{"spec.pairs"}},
		"both":            {"rules are evaluated whatever the shape", spec{"size": int64(0), "pairs": list("x", "x")}, nil, []string{"spec.size"}, []string{"spec.pairs"}},
		"transition":      {"", spec{"size": int64(1), "fixed": "y"}, spec{"size": int64(1), "fixed": "x"}, nil, []string{"spec.fixed"}},
		"created":         {"there was nothing before", spec{"size": int64(1), "fixed": "y"}, nil, nil, nil},
		"as it was":       {"accepted", spec{"size": int64(0), "mode": "a", "pairs": list("x", "x")}, spec{"size": int64(0), "pairs": list("x", "x")}, nil, nil},
		"wrong otherwise": {"", spec{"size": int64(-1)}, spec{"size": int64(0)}, []string{"spec.size"}, nil},
		"set as it was":   {"accepted", spec{"size": int64(1), "names": list("x", "x")}, spec{"size": int64(1), "names": list("x", "x")}, nil, nil},
	} {
		var old map[string]any
		if tc.old != nil {
			old = object(tc.old)
		}
		shape, err := s.Shape(object(tc.spec), old)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := s.Rules(t.Context(), object(tc.spec), old)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.shape, fields(shape)); diff != "" {
			t.Errorf("%s: shape (-want +got):\n%s%s", name, diff, tc.reason)
		}
		if diff := cmp.Diff(tc.rules, fields(rules)); diff != "" {
			t.Errorf("%s: rules (-want +got):\n%s%s", name, diff, tc.reason)
		}
	}
}

func TestComplete(t *testing.T) {
	o := object(spec{"unknown": "x", "size": nil})
	if err := newSchema(t).Complete(o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(spec{"size": int64(3)}), o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Rules that are not evaluated are not fulfilled.
func TestRulesEnd(t *testing.T) {
	s := newSchema(t)
	many := make([]any, 5000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if _, err := s.Rules(t.Context(), object(spec{"size": int64(1), "pairs": many}), nil); err == nil {
		t.Error("the budget has no end")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := s.Rules(ctx, object(spec{"size": int64(1)}), nil); err == nil {
		t.Error("the context has no end")
	}
}

func TestWithoutSchema(t *testing.T) {
	for _, version := range []string{"v0", "v2"} {
		s := New(newSchema(t).crd, version)
		o := object(spec{"a": "b"})
		shape, err := s.Shape(o, nil)
		rules, err2 := s.Rules(t.Context(), o, nil)
		if err3 := s.Complete(o); err != nil || err2 != nil || err3 != nil || len(shape)+len(rules) > 0 {
			t.Errorf("%s: got %v, %v, %v, %v, %v", version, shape, rules, err, err2, err3)
		}
	}
}

func TestUnreadableSchema(t *testing.T) {
	crd := newSchema(t).crd
	props := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	props.ID = "x" // which no schema of a CRD has
	s := New(crd, "v1")
	for name, check := range map[string]func() error{
		"complete": func() error { return s.Complete(object(spec{})) },
		"shape":    func() error { _, err := s.Shape(object(spec{}), nil); return err },
		"rules":    func() error { _, err := s.Rules(t.Context(), object(spec{}), nil); return err },
	} {
		if check() == nil {
			t.Errorf("%s: a schema that cannot be read accepts an object", name)
		}
	}
}
