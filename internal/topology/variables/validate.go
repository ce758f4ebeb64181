package variables

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// ValidateDefinitions validates the definitions of a class or extension; old has the previous definitions. The webhook
// of ClusterClasses and, for extensions, the ClusterClass controller call it. A schema that has not changed is not
// validated again, so that an accepted schema remains accepted. In a changed schema, existing CEL rules may use all CEL
// functions; new rules may only use functions that all supported versions have.
func ValidateDefinitions(list, old []clusterv1.ClusterClassVariable, path *field.Path) field.ErrorList {
	before := map[string]*clusterv1.ClusterClassVariable{}
	for i := range old {
		before[old[i].Name] = &old[i]
	}
	seen := map[string]bool{}
	var errs field.ErrorList
	for i := range list {
		at := path.Index(i)
		errs = append(errs, validateName(list[i].Name, seen, at.Child("name"))...)
		errs = append(errs, validateMetadata(list[i].DeprecatedV1Beta1Metadata.Labels, list[i].DeprecatedV1Beta1Metadata.Annotations,
			at.Child("deprecatedV1Beta1Metadata"))...)
		errs = append(errs, validateSchema(&list[i], before[list[i].Name], at.Child("schema", "openAPIV3Schema"))...)
		seen[list[i].Name] = true
	}
	return errs
}

func validateName(name string, seen map[string]bool, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "a variable needs a name")}
	case name == runtimehooksv1.BuiltinsName:
		return field.ErrorList{field.Invalid(path, name, "is the name of a predefined variable; choose another name")}
	case strings.Contains(name, "."):
		return field.ErrorList{field.Invalid(path, name, "must not contain a dot, because it separates fields in paths of variables")}
	case strings.ContainsAny(name, "[]"):
		return field.ErrorList{field.Invalid(path, name, "must not contain brackets, because they enclose an index in paths of variables")}
	case seen[name]:
		return field.ErrorList{field.Duplicate(path, name)}
	}
	return nil
}

func validateMetadata(labels, annotations map[string]string, path *field.Path) field.ErrorList {
	return append(metav1validation.ValidateLabels(labels, path.Child("labels")),
		apivalidation.ValidateAnnotations(annotations, path.Child("annotations"))...)
}

func validateSchema(v, old *clusterv1.ClusterClassVariable, path *field.Path) field.ErrorList {
	s := v.Schema.OpenAPIV3Schema
	if old != nil && reflect.DeepEqual(s, old.Schema.OpenAPIV3Schema) {
		return nil
	}
	errs := validateParts(&s, path)
	props, err := propsOf(s)
	if err != nil {
		return append(errs, field.Invalid(path, v.Name, err.Error()))
	}
	var before *apiextensions.JSONSchemaProps
	if old != nil {
		if before, err = propsOf(old.Schema.OpenAPIV3Schema); err != nil {
			before = nil
		}
	}
	errs = append(errs, validateProps(props, before, path)...)
	if len(errs) > 0 {
		return errs
	}
	return validateExamples(&s, path)
}

// validateParts validates the metadata in a schema, which a CustomResourceDefinition does not have.
func validateParts(s *clusterv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	errs := validateMetadata(s.XMetadata.Labels, s.XMetadata.Annotations, path.Child("x-metadata"))
	for name, property := range s.Properties {
		errs = append(errs, validateParts(&property, path.Child("properties").Key(name))...)
	}
	if s.AdditionalProperties != nil {
		errs = append(errs, validateParts(s.AdditionalProperties, path.Child("additionalProperties"))...)
	}
	if s.Items != nil {
		errs = append(errs, validateParts(s.Items, path.Child("items"))...)
	}
	return errs
}

// Name and path of the field in the CustomResourceDefinition that is used to validate the schema of a variable.
const (
	property = "value"
	within   = "spec.validation.openAPIV3Schema.properties[" + property + "]"
)

// validateProps validates a schema with the libraries of the API server, as the schema of a field of a
// CustomResourceDefinition.
func validateProps(props, old *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	var found field.ErrorList
	if old != nil {
		found = crdvalidation.ValidateCustomResourceDefinitionUpdate(context.Background(), definitionOf(props), definitionOf(old))
	} else {
		found = crdvalidation.ValidateCustomResourceDefinition(context.Background(), definitionOf(props))
	}
	for _, err := range found {
		rest, inside := strings.CutPrefix(err.Field, within)
		if !inside {
			rest = ""
		}
		err.Field, err.Detail = path.String()+rest, strings.ReplaceAll(err.Detail, within, path.String())
		switch bad := err.BadValue.(type) {
		case apiextensions.JSONSchemaProps:
			err.BadValue = ""
		case apiextensions.ValidationRule:
			err.BadValue = bad.Rule
		}
	}
	return found
}

// definitionOf returns a CustomResourceDefinition with a field that has the schema. It is never sent to an API server.
func definitionOf(props *apiextensions.JSONSchemaProps) *apiextensions.CustomResourceDefinition {
	const group, plural, version = "variables.cluster.x-k8s.io", "values", "v1"
	keep := false
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group, ResourceVersion: "1"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensions.NamespaceScoped, PreserveUnknownFields: &keep, Version: version,
			Names:      apiextensions.CustomResourceDefinitionNames{Plural: plural, Singular: "value", Kind: "Value", ListKind: "ValueList"},
			Versions:   []apiextensions.CustomResourceDefinitionVersion{{Name: version, Served: true, Storage: true}},
			Conversion: &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
			Validation: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{property: *props},
			}},
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{version}},
	}
}

// validateExamples validates the example and the enum values of every part of a schema against that part.
func validateExamples(s *clusterv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	errs := validateOwnExamples(s, path)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		errs = append(errs, validateExamples(new(s.Properties[name]), path.Child("properties").Key(name))...)
	}
	if s.AdditionalProperties != nil {
		errs = append(errs, validateExamples(s.AdditionalProperties, path.Child("additionalProperties"))...)
	}
	if s.Items != nil {
		errs = append(errs, validateExamples(s.Items, path.Child("items"))...)
	}
	return errs
}

func validateOwnExamples(s *clusterv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	if s.Example == nil && len(s.Enum) == 0 {
		return nil
	}
	c, err := compile(*s)
	if err != nil {
		return field.ErrorList{field.Invalid(path, "", err.Error())}
	}
	var errs field.ErrorList
	check := func(value apiextensionsv1.JSON, at *field.Path) {
		decoded, err := decode(value)
		if err != nil {
			errs = append(errs, field.Invalid(at, string(value.Raw), "must be JSON"))
			return
		}
		errs = append(errs, c.validate(decoded, nil, at)...)
	}
	if s.Example != nil {
		check(*s.Example, path.Child("example"))
	}
	for i, value := range s.Enum {
		check(value, path.Child("enum").Index(i))
	}
	return errs
}
