package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"
)

// field is a struct field in the JSON encoding.
type field struct {
	name     string
	of       string // the Go name with the struct
	index    []int
	typ      reflect.Type
	tag      reflect.StructTag
	required bool
}

// jsonFields returns the fields of a struct, including the fields of embedded structs.
func jsonFields(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Anonymous && name == ""
		if !f.IsExported() || name == "-" && options == "" || embedded && isStruct(f.Type) || isOutOfReach(t, f) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		out = append(out, field{name, t.String() + "." + f.Name, f.Index, f.Type, f.Tag, f.Tag.Get("required") == "true"})
	}
	return out
}

// isOutOfReach reports whether a field belongs to an embedded struct that JSON does not flatten, because the struct has
// a name or is a pointer to an unexported type.
func isOutOfReach(t reflect.Type, f reflect.StructField) bool {
	for i := 1; i < len(f.Index); i++ {
		parent := t.FieldByIndex(f.Index[:i])
		name, _, _ := strings.Cut(parent.Tag.Get("json"), ",")
		if name != "" || parent.Type.Kind() == reflect.Pointer && !parent.IsExported() {
			return true
		}
	}
	return false
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

// in returns the field in a struct, and allocates nil pointers to embedded structs.
func (f field) in(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// schema returns the schema of the field, including its tags. within are the enclosing structs.
func (f field) schema(within []reflect.Type) (clusterv1.JSONSchemaProps, error) {
	s, err := schemaOf(f.typ, within)
	if err != nil {
		return s, fmt.Errorf("%s: %w", f.of, err)
	}
	if err := f.tagged(&s); err != nil {
		return s, fmt.Errorf("%s: %w", f.of, err)
	}
	return s, nil
}

// ownForm is implemented by Kubernetes types with a custom JSON encoding.
type ownForm interface {
	OpenAPISchemaType() []string
	OpenAPISchemaFormat() string
}

// schemaOf returns the schema of a type.
func schemaOf(t reflect.Type, within []reflect.Type) (clusterv1.JSONSchemaProps, error) {
	if t.Kind() == reflect.Pointer {
		return schemaOf(t.Elem(), within)
	}
	switch t {
	case reflect.TypeFor[intstr.IntOrString]():
		return clusterv1.JSONSchemaProps{XIntOrString: new(true)}, nil
	case reflect.TypeFor[[]byte]():
		return clusterv1.JSONSchemaProps{Type: "string", Format: "byte"}, nil
	case reflect.TypeFor[apiextensionsv1.JSON](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		return clusterv1.JSONSchemaProps{XPreserveUnknownFields: new(true)}, nil
	case reflect.TypeFor[runtime.RawExtension]():
		return clusterv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}, nil
	}
	if own, ok := reflect.New(t).Interface().(ownForm); ok && len(own.OpenAPISchemaType()) == 1 {
		return clusterv1.JSONSchemaProps{Type: own.OpenAPISchemaType()[0], Format: own.OpenAPISchemaFormat()}, nil
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return clusterv1.JSONSchemaProps{}, fmt.Errorf("%s has a JSON of its own and no method OpenAPISchemaType", t)
	}
	return schemaOfKind(t, within)
}

func schemaOfKind(t reflect.Type, within []reflect.Type) (clusterv1.JSONSchemaProps, error) {
	switch t.Kind() {
	case reflect.String:
		return clusterv1.JSONSchemaProps{Type: "string"}, nil
	case reflect.Bool:
		return clusterv1.JSONSchemaProps{Type: "boolean"}, nil
	case reflect.Int32, reflect.Int64:
		return clusterv1.JSONSchemaProps{Type: "integer", Format: t.Kind().String()}, nil
	case reflect.Int, reflect.Int8, reflect.Int16:
		return clusterv1.JSONSchemaProps{Type: "integer"}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return clusterv1.JSONSchemaProps{Type: "integer", Minimum: new(int64(0))}, nil
	case reflect.Float32, reflect.Float64:
		return clusterv1.JSONSchemaProps{Type: "number"}, nil
	case reflect.Slice, reflect.Array:
		items, err := schemaOf(t.Elem(), within)
		return clusterv1.JSONSchemaProps{Type: "array", Items: &items}, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return clusterv1.JSONSchemaProps{}, fmt.Errorf("a map with keys of %s is no JSON object", t.Key())
		}
		values, err := schemaOf(t.Elem(), within)
		return clusterv1.JSONSchemaProps{Type: "object", AdditionalProperties: &values}, err
	case reflect.Struct:
		return schemaOfStruct(t, within)
	}
	return clusterv1.JSONSchemaProps{}, fmt.Errorf("there is no schema of %s", t)
}

func schemaOfStruct(t reflect.Type, within []reflect.Type) (clusterv1.JSONSchemaProps, error) {
	out := clusterv1.JSONSchemaProps{Type: "object", Properties: map[string]clusterv1.JSONSchemaProps{}}
	if slices.Contains(within, t) {
		return out, fmt.Errorf("%s contains itself", t)
	}
	var problems []error
	for _, f := range jsonFields(t) {
		s, err := f.schema(append(slices.Clone(within), t))
		problems = append(problems, err)
		out.Properties[f.name] = s
		if f.required {
			out.Required = append(out.Required, f.name)
		}
	}
	return out, errors.Join(problems...)
}

// bounds returns the numeric tags, with the JSON types that they apply to.
func bounds(s *clusterv1.JSONSchemaProps) map[string]struct {
	types []string
	set   **int64
} {
	numbers, text, list := []string{"integer", "number"}, []string{"string"}, []string{"array"}
	return map[string]struct {
		types []string
		set   **int64
	}{
		"minimum": {numbers, &s.Minimum}, "maximum": {numbers, &s.Maximum},
		"minLength": {text, &s.MinLength}, "maxLength": {text, &s.MaxLength},
		"minItems": {list, &s.MinItems}, "maxItems": {list, &s.MaxItems},
	}
}

// tagged adds the values of the field's tags to a schema.
func (f field) tagged(s *clusterv1.JSONSchemaProps) error {
	var problems []error
	for _, tag := range []string{"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"} {
		text, given := f.tag.Lookup(tag)
		if !given {
			continue
		}
		b := bounds(s)[tag]
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !slices.Contains(b.types, s.Type) {
			problems = append(problems, fmt.Errorf("the tag %s:%q is for whole numbers, and for a field of %s", tag, text, strings.Join(b.types, " or ")))
			continue
		}
		*b.set = &n
	}
	s.Description = f.tag.Get("description")
	if format := f.tag.Get("format"); format != "" {
		s.Format = format
	}
	if s.Pattern = f.tag.Get("pattern"); s.Pattern != "" && s.Type != "string" {
		problems = append(problems, errors.New("the tag pattern is for texts"))
	}
	if rule := f.tag.Get("rule"); rule != "" {
		s.XValidations = []clusterv1.ValidationRule{{Rule: rule, Message: f.tag.Get("ruleMessage")}}
	}
	return errors.Join(append(problems, f.values(s))...)
}

// values adds default, example and enum.
func (f field) values(s *clusterv1.JSONSchemaProps) error {
	var problems []error
	if text, given := f.tag.Lookup("default"); given {
		value, err := f.value("default", text)
		s.Default, problems = &value, append(problems, err)
	}
	if text, given := f.tag.Lookup("example"); given {
		value, err := f.value("example", text)
		s.Example, problems = &value, append(problems, err)
	}
	if list := f.tag.Get("enum"); list != "" {
		for text := range strings.SplitSeq(list, ",") {
			value, err := f.value("enum", text)
			s.Enum = append(s.Enum, value)
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// value parses a value of the field in a tag.
func (f field) value(tag, text string) (apiextensionsv1.JSON, error) {
	typ := f.typ
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if typ.Kind() == reflect.String {
		raw, err = json.Marshal(text)
	}
	into := reflect.New(typ)
	if err == nil {
		err = json.Unmarshal(raw, into.Interface())
	}
	if err != nil {
		return apiextensionsv1.JSON{}, fmt.Errorf("the tag %s:%q is no value of the field: %w", tag, text, err)
	}
	return apiextensionsv1.JSON{Raw: raw}, nil
}
