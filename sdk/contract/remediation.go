package contract

import "strings"

// RemediationTemplateView is a template of external remediation requests with the fields of the contract.
type RemediationTemplateView struct {
	Object
	// RequestKind is the kind of the requests created from the template: its own kind without the suffix "Template".
	RequestKind string
	// RequestLabels and RequestAnnotations are the metadata of a request, from spec.template.metadata.
	RequestLabels, RequestAnnotations Field[map[string]string]
	// RequestSpec is the spec of a request.
	RequestSpec Field[map[string]any]
}

// RemediationTemplate returns the view of an external remediation template.
func RemediationTemplate(o Object) RemediationTemplateView {
	v := RemediationTemplateView{
		Object:             o,
		RequestLabels:      read[map[string]string](o, "spec.template.metadata.labels"),
		RequestAnnotations: read[map[string]string](o, "spec.template.metadata.annotations"),
		RequestSpec:        read[map[string]any](o, "spec.template.spec"),
	}
	if o.Presence() == Found {
		v.RequestKind = RequestKind(o.GetKind())
	}
	return v
}

// RequestKind returns the kind of the objects created from templates of a kind.
func RequestKind(templateKind string) string { return strings.TrimSuffix(templateKind, "Template") }
