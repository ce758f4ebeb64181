package kube

import (
	"encoding/json"
	"regexp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// StatusLimits holds the constraints of the API for the status of each kind.
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

// NewStatusLimits reads the schemas of the status from CRDs, in the storage version, which is the version written by Slipway.
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
