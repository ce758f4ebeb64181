package contract

import "strings"

// RemediationTemplateView is a template of requests for external remediation, as the contract sees it.
type RemediationTemplateView struct {
	Object
	// RequestKind is the kind of the requests made from the template: its own kind without the ending "Template".
	RequestKind string
	// RequestLabels and RequestAnnotations are what a request gets from spec.template.metadata.
	RequestLabels, RequestAnnotations Field[map[string]string]
	// RequestSpec is the spec of a request.
	RequestSpec Field[map[string]any]
}

// RemediationTemplate returns the view of a template of remediation requests.
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

// RequestKind returns the kind of what is made from templates of the kind.
func RequestKind(templateKind string) string { return strings.TrimSuffix(templateKind, "Template") }
