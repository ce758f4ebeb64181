package lint

import (
	"cmp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// crdConversion is the rule crd-conversion of `slipway provider lint`: it checks CRDs without a conversion webhook. The
// API server then only changes the apiVersion, so that a write in one version drops the fields that this version lacks.
func crdConversion(r *release, report reporter) {
	for _, k := range r.kinds() {
		if c := k.crd.Spec.Conversion; c != nil && c.Strategy == apiextensionsv1.WebhookConverter {
			continue
		}
		used := slices.DeleteFunc(slices.Clone(k.crd.Spec.Versions), func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return !v.Served && !v.Storage || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil
		})
		for i, a := range used {
			for _, b := range used[i+1:] {
				if only, field := firstDifference(a, b); field != "" {
					report(k.file, k.id(), "the field %s differs or exists only in version %s, and spec.conversion.strategy is not Webhook: the API server drops fields that a version does not have; convert %s and %s with a webhook",
						field, only, a.Name, b.Name)
				}
			}
		}
	}
}

// firstDifference returns the first field that only one of two versions has, and this version; field is empty if there
// is none.
func firstDifference(a, b apiextensionsv1.CustomResourceDefinitionVersion) (version, field string) {
	if field := droppedField(a.Schema.OpenAPIV3Schema, b.Schema.OpenAPIV3Schema, ""); field != "" {
		return a.Name, field
	}
	return b.Name, droppedField(b.Schema.OpenAPIV3Schema, a.Schema.OpenAPIV3Schema, "")
}

// droppedField returns the path of the first field of a schema that another schema would prune or reject, or "" if
// there is none.
func droppedField(from, to *apiextensionsv1.JSONSchemaProps, path string) string {
	switch {
	case from == nil || to == nil || to.XPreserveUnknownFields != nil && *to.XPreserveUnknownFields:
		return ""
	case from.Type != to.Type:
		return cmp.Or(path, ".")
	}
	names := make([]string, 0, len(from.Properties))
	for name := range from.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		inner, at := from.Properties[name], name
		if path != "" {
			at = path + "." + name
		}
		if path == "" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		other, there := to.Properties[name]
		if !there && to.AdditionalProperties != nil && to.AdditionalProperties.Schema != nil {
			other, there = *to.AdditionalProperties.Schema, true
		}
		if !there {
			return at
		}
		if found := droppedField(&inner, &other, at); found != "" {
			return found
		}
	}
	if from.Items != nil && to.Items != nil {
		if found := droppedField(from.Items.Schema, to.Items.Schema, path+"[]"); found != "" {
			return found
		}
	}
	if from.AdditionalProperties != nil && to.AdditionalProperties != nil {
		return droppedField(from.AdditionalProperties.Schema, to.AdditionalProperties.Schema, path+".*")
	}
	return ""
}
