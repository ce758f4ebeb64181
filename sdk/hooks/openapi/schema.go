package openapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Schema is a JSON schema of OpenAPI 3.0. If Ref is set, all other fields are empty.
type Schema struct {
	Ref                  string             `json:"$ref,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Format               string             `json:"format,omitempty"`
	Description          string             `json:"description,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	MaxLength            int                `json:"maxLength,omitempty"`
	AnyOf                []*Schema          `json:"anyOf,omitempty"`
	AllOf                []*Schema          `json:"allOf,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"`
}

// schemas collects the schemas of one document.
type schemas struct {
	named    map[string]*Schema
	types    map[string]reflect.Type
	own      map[reflect.Type]func() *Schema
	describe Describe
	err      error
}

func newSchemas(describe Describe) *schemas {
	if describe == nil {
		describe = func(reflect.Type, string) string { return "" }
	}
	return &schemas{named: map[string]*Schema{}, types: map[string]reflect.Type{}, own: forms(), describe: describe}
}

// forms returns the schemas of types with a custom JSON encoding.
func forms() map[reflect.Type]func() *Schema {
	date := func() *Schema { return &Schema{Type: "string", Format: "date-time"} }
	text := func(values ...string) func() *Schema {
		return func() *Schema { return &Schema{Type: "string", Enum: values} }
	}
	either := func() *Schema { return &Schema{AnyOf: []*Schema{{Type: "integer"}, {Type: "string"}}} }
	object := func() *Schema { return &Schema{Type: "object", AdditionalProperties: &Schema{}} }
	return map[reflect.Type]func() *Schema{
		reflect.TypeFor[metav1.Time]():           date,
		reflect.TypeFor[metav1.MicroTime]():      date,
		reflect.TypeFor[metav1.Duration]():       text(),
		reflect.TypeFor[metav1.FieldsV1]():       object,
		reflect.TypeFor[runtime.RawExtension]():  object,
		reflect.TypeFor[intstr.IntOrString]():    either,
		reflect.TypeFor[resource.Quantity]():     either,
		reflect.TypeFor[apiextensionsv1.JSON]():  func() *Schema { return &Schema{} },
		reflect.TypeFor[[]byte]():                func() *Schema { return &Schema{Type: "string", Format: "byte"} },
		reflect.TypeFor[hooksv1.PatchType]():     text(string(hooksv1.JSONPatchType), string(hooksv1.JSONMergePatchType)),
		reflect.TypeFor[hooksv1.FailurePolicy](): text(string(hooksv1.FailurePolicyFail), string(hooksv1.FailurePolicyIgnore)),
		reflect.TypeFor[hooksv1.ResponseStatus](): text(
			string(hooksv1.ResponseStatusSuccess), string(hooksv1.ResponseStatusFailure)),
	}
}

// of returns the schema of a type. Structs become named schemas that are referenced.
func (s *schemas) of(t reflect.Type) *Schema {
	if form := s.own[t]; form != nil {
		return form()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Int32:
		return &Schema{Type: "integer", Format: "int32"}
	case reflect.Int64, reflect.Int:
		return &Schema{Type: "integer", Format: "int64"}
	case reflect.Float64:
		return &Schema{Type: "number", Format: "double"}
	case reflect.Slice:
		return &Schema{Type: "array", Items: s.of(t.Elem())}
	case reflect.Map:
		return &Schema{Type: "object", AdditionalProperties: s.of(t.Elem())}
	case reflect.Struct:
		return s.structOf(t)
	}
	s.fail("the type %s has no JSON schema", t)
	return &Schema{}
}

func (s *schemas) structOf(t reflect.Type) *Schema {
	name := nameOf(t)
	ref := &Schema{Ref: "#/components/schemas/" + name}
	if known, ok := s.types[name]; ok {
		if known != t {
			s.fail("the types %s and %s would both be called %s", known.PkgPath()+"."+known.Name(), t.PkgPath()+"."+t.Name(), name)
		}
		return ref
	}
	if marshaler := reflect.TypeFor[json.Marshaler](); t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		s.fail("the type %s has a JSON form of its own, which this package does not know", t)
	}
	s.types[name] = t
	schema := &Schema{Type: "object", Description: s.describe(t, ""), Properties: map[string]*Schema{}}
	s.named[name] = schema
	s.fields(t, schema)
	return ref
}

// fields adds the fields of a struct, including the fields of embedded structs.
func (s *schemas) fields(t reflect.Type, into *Schema) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
			continue
		case name == "" && f.Anonymous:
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			s.fields(embedded, into)
			continue
		case name == "":
			name = f.Name
		}
		into.Properties[name] = described(s.of(f.Type), s.describe(t, name))
		if !strings.Contains(options, "omit") {
			into.Required = required(into.Required, name)
		}
	}
}

// described adds a description to a schema. A reference is wrapped, because it cannot have one.
func described(schema *Schema, text string) *Schema {
	if text == "" {
		return schema
	}
	if schema.Ref != "" {
		return &Schema{AllOf: []*Schema{schema}, Description: text}
	}
	schema.Description = text
	return schema
}

func required(list []string, names ...string) []string {
	list = append(list, names...)
	slices.Sort(list)
	return slices.Compact(list)
}

// nameOf returns the last two elements of the package path and the type name, as in "core.v1beta2.Cluster".
func nameOf(t reflect.Type) string {
	elements := strings.Split(t.PkgPath(), "/")
	elements = elements[max(0, len(elements)-2):]
	return strings.Join(append(elements, t.Name()), ".")
}
