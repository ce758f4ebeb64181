package kube

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Limits are what the API accepts as the status of each kind, as the schemas of the CRDs say. Much of a status comes from a
// provider or a workload cluster, which may report anything; one value that is refused would keep all others from being written.
type Limits map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps

// NewLimits takes the schemas of the status from CRDs, those of the versions that are stored and written here.
func NewLimits(crds []*apiextensionsv1.CustomResourceDefinition) Limits {
	out := Limits{}
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if !v.Storage || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			if status, ok := v.Schema.OpenAPIV3Schema.Properties["status"]; ok {
				out[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = &status
			}
		}
	}
	return out
}

// Bound returns a status, as encoding/json reads it, without the values that the API would refuse, and says which these are,
// in words for people. The status given is not changed.
func (l Limits) Bound(kind schema.GroupVersionKind, status map[string]any) (map[string]any, []string) {
	limit, known := l[kind]
	if !known {
		return status, nil
	}
	var refused refusals
	kept, ok := refused.bound(limit, status, "status")
	out, _ := kept.(map[string]any)
	if !ok || out == nil {
		out = map[string]any{}
	}
	return out, refused
}

// refusals are the values that were left out.
type refusals []string

// shownValue bounds a value in a message, in bytes.
const shownValue = 40

func (r *refusals) add(path string, value any, why string) {
	text := fmt.Sprintf("%q", fmt.Sprint(value))
	if len(text) > shownValue {
		text = strings.ToValidUTF8(text[:shownValue], "") + "…\""
	}
	*r = append(*r, fmt.Sprintf("%s %s %s", path, text, why))
}

// bound returns what may be kept of a value, and whether that is anything.
func (r *refusals) bound(limit *apiextensionsv1.JSONSchemaProps, value any, path string) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		return r.boundObject(limit, v, path)
	case []any:
		return r.boundList(limit, v, path)
	case string:
		return r.boundText(limit, v, path)
	case int64:
		return value, r.inRange(limit, float64(v), path)
	case float64:
		return value, r.inRange(limit, v, path)
	}
	return value, true
}

func (r *refusals) boundObject(limit *apiextensionsv1.JSONSchemaProps, object map[string]any, path string) (any, bool) {
	out := make(map[string]any, len(object))
	for _, key := range slices.Sorted(maps.Keys(object)) {
		property, ok := limit.Properties[key]
		if !ok && limit.AdditionalProperties != nil && limit.AdditionalProperties.Schema != nil {
			property, ok = *limit.AdditionalProperties.Schema, true
		}
		if !ok {
			out[key] = object[key]
			continue
		}
		if kept, ok := r.bound(&property, object[key], path+"."+key); ok {
			out[key] = kept
		}
	}
	for _, key := range limit.Required {
		if _, has := out[key]; !has {
			if _, had := object[key]; !had {
				r.add(path+"."+key, "", "is missing")
			}
			return nil, false
		}
	}
	emptied := len(out) == 0 && len(object) > 0
	return out, !emptied && (limit.MinProperties == nil || int64(len(out)) >= *limit.MinProperties)
}

func (r *refusals) boundList(limit *apiextensionsv1.JSONSchemaProps, list []any, path string) (any, bool) {
	if limit.Items == nil || limit.Items.Schema == nil {
		return list, true
	}
	out, seen := make([]any, 0, len(list)), map[string]bool{}
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		kept, ok := r.bound(limit.Items.Schema, item, at)
		if !ok {
			continue
		}
		if key, keyed := keyOf(limit, kept); keyed && seen[key] {
			r.add(at, key, "is there twice")
			continue
		} else if keyed {
			seen[key] = true
		}
		if limit.MaxItems != nil && int64(len(out)) >= *limit.MaxItems {
			r.add(at, "", fmt.Sprintf("is one of more than %d", *limit.MaxItems))
			break
		}
		out = append(out, kept)
	}
	return out, len(out) > 0 || len(list) == 0 && (limit.MinItems == nil || *limit.MinItems == 0)
}

// keyOf is what no two items of a list may have in common.
func keyOf(limit *apiextensionsv1.JSONSchemaProps, item any) (string, bool) {
	if limit.XListType == nil {
		return "", false
	}
	switch *limit.XListType {
	case "set":
		return fmt.Sprint(item), true
	case "map":
		object, _ := item.(map[string]any)
		var parts []string
		for _, key := range limit.XListMapKeys {
			parts = append(parts, fmt.Sprint(object[key]))
		}
		return strings.Join(parts, "/"), true
	}
	return "", false
}

// boundText cuts what people read, and drops everything else that is too long: half a name is another name.
func (r *refusals) boundText(limit *apiextensionsv1.JSONSchemaProps, text, path string) (any, bool) {
	length := int64(utf8.RuneCountInString(text))
	switch {
	case limit.MaxLength != nil && length > *limit.MaxLength && strings.HasSuffix(strings.ToLower(path), "message"):
		return string([]rune(text)[:*limit.MaxLength]), true
	case limit.MaxLength != nil && length > *limit.MaxLength:
		r.add(path, text, fmt.Sprintf("has more than %d characters", *limit.MaxLength))
		return nil, false
	case limit.MinLength != nil && length < *limit.MinLength:
		r.add(path, text, fmt.Sprintf("has less than %d characters", *limit.MinLength))
		return nil, false
	case len(limit.Enum) > 0 && !slices.ContainsFunc(limit.Enum, func(one apiextensionsv1.JSON) bool { return string(one.Raw) == fmt.Sprintf("%q", text) }):
		r.add(path, text, "is none of the values that there are")
		return nil, false
	case limit.Pattern != "" && !matchesPattern(limit.Pattern, text):
		r.add(path, text, "does not match "+limit.Pattern)
		return nil, false
	}
	return text, true
}

func matchesPattern(pattern, text string) bool {
	expression, err := regexp.Compile(pattern)
	return err != nil || expression.MatchString(text)
}

func (r *refusals) inRange(limit *apiextensionsv1.JSONSchemaProps, n float64, path string) bool {
	switch {
	case limit.Minimum != nil && n < *limit.Minimum:
		r.add(path, n, fmt.Sprintf("is less than %g", *limit.Minimum))
		return false
	case limit.Maximum != nil && n > *limit.Maximum:
		r.add(path, n, fmt.Sprintf("is more than %g", *limit.Maximum))
		return false
	}
	return true
}
