package contract

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// templateSuffix ends the kinds of templates.
const templateSuffix = "Template"

// TemplateContent is what a template says about the objects that are created from it.
type TemplateContent struct {
	// Kind of these objects.
	Kind string
	// Labels and Annotations of these objects.
	Labels, Annotations map[string]string
	// Spec of these objects; it belongs to the template and must not be changed.
	Spec map[string]any
}

// Template returns what a template says about the objects that are created from it. It is none where its kind does not end with
// Template, or it has no spec.template.
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
