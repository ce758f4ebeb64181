package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StatusLimits holds the constraints for the status of each kind that are in the schemas of CRDs. The driver (package
// reconciler) prunes each status with it before the write, because one invalid value would prevent all others from
// being written. The schemas are compiled once, when the manager starts.
type StatusLimits map[schema.GroupVersionKind]*limit

// limit holds the constraints for one value.
type limit struct {
	properties           map[string]*limit
	additional, items    *limit
	required             []string
	minProperties        *int64
	minItems, maxItems   *int64
	isSet                bool
	keys                 []string
	minLength, maxLength *int64
	enum                 []string
	pattern              *regexp.Regexp
	minimum, maximum     *float64
}

// NewStatusLimits reads the schemas of the status from CRDs, in the storage version, which is the version written by
// Slipway. The manager calls it at its start.
func NewStatusLimits(crds []*apiextensionsv1.CustomResourceDefinition) StatusLimits {
	out := StatusLimits{}
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if !v.Storage || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
				continue
			}
			if status, ok := v.Schema.OpenAPIV3Schema.Properties["status"]; ok {
				out[schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = compile(&status)
			}
		}
	}
	return out
}

// compile reads the constraints of a schema and everything below it. Constraints that limit does not have, such as CEL
// rules, are left to the API server.
func compile(s *apiextensionsv1.JSONSchemaProps) *limit {
	out := &limit{
		required: s.Required, minProperties: s.MinProperties, minItems: s.MinItems, maxItems: s.MaxItems,
		minLength: s.MinLength, maxLength: s.MaxLength, minimum: s.Minimum, maximum: s.Maximum,
	}
	if len(s.Properties) > 0 {
		out.properties = make(map[string]*limit, len(s.Properties))
	}
	for name := range s.Properties {
		property := s.Properties[name]
		out.properties[name] = compile(&property)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out.additional = compile(s.AdditionalProperties.Schema)
	}
	if s.Items != nil && s.Items.Schema != nil {
		out.items = compile(s.Items.Schema)
	}
	if s.XListType != nil && *s.XListType == "set" {
		out.isSet = true
	}
	if s.XListType != nil && *s.XListType == "map" {
		out.keys = s.XListMapKeys
	}
	for _, one := range s.Enum {
		var text string
		if json.Unmarshal(one.Raw, &text) == nil {
			out.enum = append(out.enum, text)
		}
	}
	if s.Pattern != "" {
		out.pattern, _ = regexp.Compile(s.Pattern) // patterns that Go does not support are left to the API server
	}
	return out
}

// Prune returns a status, in the form of encoding/json, without the values that the API would reject, and a sorted list
// of messages about these values. The given status is not changed; it is returned itself if nothing is rejected.
// Package reporting calls it for each status that changes, and returns the messages as an error.
func (l StatusLimits) Prune(kind schema.GroupVersionKind, status map[string]any) (map[string]any, []string) {
	limit, known := l[kind]
	if !known {
		return status, nil
	}
	var r refusals
	kept, result := r.object(limit, status, &path{name: "status"})
	if result == refused {
		kept = map[string]any{}
	}
	slices.Sort(r)
	return kept, r
}

// result is the result of checking a value.
type result int

const (
	accepted result = iota
	// reduced means that a part of the value is omitted.
	reduced
	refused
)

// path is the path of a value. It is formatted only for messages.
type path struct {
	in   *path
	name string
	// index of a list item, which has no name.
	index int
}

func (p *path) String() string {
	switch {
	case p.in == nil:
		return p.name
	case p.name == "":
		return p.in.String() + "[" + strconv.Itoa(p.index) + "]"
	}
	return p.in.String() + "." + p.name
}

// isMessage reports whether a field is a message for users.
func (p *path) isMessage() bool { return strings.HasSuffix(strings.ToLower(p.name), "message") }

// refusals are messages about the values that were omitted.
type refusals []string

// shownValue limits the length of a value in a message, in bytes.
const shownValue = 40

func (r *refusals) add(at *path, value any, why string) {
	text := fmt.Sprintf("%q", fmt.Sprint(value))
	if len(text) > shownValue {
		text = strings.ToValidUTF8(text[:shownValue], "") + "…\""
	}
	*r = append(*r, at.String()+" "+text+" "+why)
}

// value returns the valid part of a value.
func (r *refusals) value(l *limit, value any, at *path) (any, result) {
	switch v := value.(type) {
	case map[string]any:
		return r.object(l, v, at)
	case []any:
		return r.list(l, v, at)
	case string:
		return r.text(l, v, at)
	case int64:
		return value, r.number(l, float64(v), at)
	case float64:
		return value, r.number(l, v, at)
	}
	return value, accepted
}

func (r *refusals) object(l *limit, object map[string]any, at *path) (map[string]any, result) {
	out, became := object, accepted
	for key, value := range object {
		property := l.properties[key]
		if property == nil {
			property = l.additional
		}
		if property == nil {
			continue
		}
		kept, result := r.value(property, value, &path{in: at, name: key})
		if result == accepted {
			continue
		}
		if became == accepted {
			out, became = maps.Clone(out), reduced
		}
		if result == refused {
			delete(out, key)
		} else {
			out[key] = kept
		}
	}
	if !r.isStillValid(l, object, out, at) {
		return nil, refused
	}
	return out, became
}

// isStillValid reports whether an object is still valid after values were omitted.
func (r *refusals) isStillValid(l *limit, object, out map[string]any, at *path) bool {
	for _, key := range l.required {
		if _, has := out[key]; !has {
			if _, had := object[key]; !had {
				r.add(&path{in: at, name: key}, "", "is missing")
			}
			return false
		}
	}
	emptied := len(out) == 0 && len(object) > 0
	return !emptied && (l.minProperties == nil || int64(len(out)) >= *l.minProperties)
}

func (r *refusals) list(l *limit, list []any, at *path) ([]any, result) {
	if l.items == nil {
		return list, accepted
	}
	out, seen, became := make([]any, 0, len(list)), map[string]bool{}, accepted
	for i, item := range list {
		here := &path{in: at, index: i}
		kept, result := r.value(l.items, item, here)
		if result != accepted {
			became = reduced
		}
		if result == refused {
			continue
		}
		if key, keyed := l.keyOf(kept); keyed && seen[key] {
			r.add(here, key, "is there twice")
			became = reduced
			continue
		} else if keyed {
			seen[key] = true
		}
		if l.maxItems != nil && int64(len(out)) >= *l.maxItems {
			r.add(here, "", fmt.Sprintf("is one of more than %d", *l.maxItems))
			became = reduced
			break
		}
		out = append(out, kept)
	}
	if len(out) == 0 && (len(list) > 0 || l.minItems != nil && *l.minItems > 0) {
		return nil, refused
	}
	return out, became
}

// keyOf returns the key that must be unique among the items of a list.
func (l *limit) keyOf(item any) (string, bool) {
	if l.isSet {
		return fmt.Sprint(item), true
	}
	if len(l.keys) == 0 {
		return "", false
	}
	object, _ := item.(map[string]any)
	key := fmt.Sprint(object[l.keys[0]])
	for _, name := range l.keys[1:] {
		key += "/" + fmt.Sprint(object[name])
	}
	return key, true
}

// text truncates messages, and rejects other strings that are too long, because a truncated name is a different name.
func (r *refusals) text(l *limit, text string, at *path) (string, result) {
	length := int64(utf8.RuneCountInString(text))
	switch {
	case l.maxLength != nil && length > *l.maxLength && at.isMessage():
		return string([]rune(text)[:*l.maxLength]), reduced
	case l.maxLength != nil && length > *l.maxLength:
		r.add(at, text, fmt.Sprintf("has more than %d characters", *l.maxLength))
	case l.minLength != nil && length < *l.minLength:
		r.add(at, text, fmt.Sprintf("has less than %d characters", *l.minLength))
	case len(l.enum) > 0 && !slices.Contains(l.enum, text):
		r.add(at, text, "is none of the values that there are")
	case l.pattern != nil && !l.pattern.MatchString(text):
		r.add(at, text, "does not match "+l.pattern.String())
	default:
		return text, accepted
	}
	return "", refused
}

func (r *refusals) number(l *limit, n float64, at *path) result {
	switch {
	case l.minimum != nil && n < *l.minimum:
		r.add(at, n, fmt.Sprintf("is less than %g", *l.minimum))
	case l.maximum != nil && n > *l.maximum:
		r.add(at, n, fmt.Sprintf("is more than %g", *l.maximum))
	default:
		return accepted
	}
	return refused
}
