package contract

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// templateSuffix is the suffix of template kinds.
const templateSuffix = "Template"

// TemplateContent describes the objects created from a template.
type TemplateContent struct {
	// Kind is the kind of these objects.
	Kind string
	// Labels and Annotations are the metadata of these objects.
	Labels, Annotations map[string]string
	// Spec is the spec of these objects. It is shared with the template and must not be modified.
	Spec map[string]any
}

// Template returns the content of a template. It returns false if the kind does not have the suffix "Template", or if
// the object has no spec.template.
func Template(o Object) (TemplateContent, bool) {
	kind, isTemplate := strings.CutSuffix(o.GetKind(), templateSuffix)
	template, found := dig(o.content(), []string{"spec", "template"})
	content, isMap := template.(map[string]any)
	if !isTemplate || kind == "" || !found || !isMap {
		return TemplateContent{}, false
	}
	out := TemplateContent{Kind: kind}
	out.Spec, _ = content["spec"].(map[string]any)
	out.Labels, _, _ = unstructured.NestedStringMap(content, "metadata", "labels")
	out.Annotations, _, _ = unstructured.NestedStringMap(content, "metadata", "annotations")
	return out, true
}
