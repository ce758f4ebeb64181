package admission

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// extensionPort is the default port of a Service.
const extensionPort = int32(443)

// defaultExtensionConfig sets, for [Default], an empty namespaceSelector, which selects all namespaces, and the port of
// the Service.
func defaultExtensionConfig(c *runtimev1.ExtensionConfig) {
	if c.Spec.NamespaceSelector == nil {
		c.Spec.NamespaceSelector = &metav1.LabelSelector{}
	}
	if service := &c.Spec.ClientConfig.Service; service.IsDefined() && service.Port == nil {
		service.Port = new(extensionPort)
	}
}

// validateExtensionConfig validates the feature gate, the name and the address of the extension for [Validate]. It
// warns about deprecated hooks for which the extension had handlers at the last discovery.
func validateExtensionConfig(r Request, c *runtimev1.ExtensionConfig, catalog *hooks.Catalog) Response {
	if !r.Gates.RuntimeSDK {
		return Response{Errors: field.ErrorList{field.Forbidden(field.NewPath("spec"),
			"Runtime Extensions are disabled; start the manager with --feature-gates=RuntimeSDK=true")}}
	}
	spec := field.NewPath("spec")
	var errs field.ErrorList
	for _, text := range validation.IsDNS1123Label(c.Name) {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name, "must be a DNS label, because it is part of the names of handlers: "+text))
	}
	errs = append(errs, validateInjection(c)...)
	errs = append(errs, clientConfigProblems(&c.Spec.ClientConfig, spec.Child("clientConfig"))...)
	if c.Spec.NamespaceSelector != nil {
		errs = append(errs, metavalidation.ValidateLabelSelector(c.Spec.NamespaceSelector,
			metavalidation.LabelSelectorValidationOptions{}, spec.Child("namespaceSelector"))...)
	}
	return Response{Errors: errs, Warnings: deprecationWarnings(c, catalog)}
}

// validateInjection validates the annotation that references the Secret with the CA certificate.
func validateInjection(c *runtimev1.ExtensionConfig) field.ErrorList {
	text, ok := c.Annotations[runtimev1.InjectCAFromSecretAnnotation]
	if parts := strings.Split(text, "/"); !ok || len(parts) == 2 && parts[0] != "" && parts[1] != "" {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata",
		"annotations").Key(runtimev1.InjectCAFromSecretAnnotation), text,
		"must be <namespace>/<name> of a Secret")}
}

// deprecationWarnings returns a warning for each handler of a deprecated hook version, in the order of the status.
func deprecationWarnings(c *runtimev1.ExtensionConfig, catalog *hooks.Catalog) []string {
	var out []string
	for _, h := range c.Status.Handlers {
		id, err := hooks.ParseID(h.RequestHook.APIVersion, h.RequestHook.Hook)
		if err != nil {
			continue
		}
		if known, ok := catalog.Hook(id); ok && known.Deprecation != nil {
			out = append(out, fmt.Sprintf("handler %s serves %s of %s, deprecated since %s: %s",
				h.Name, id.Hook, id.APIVersion(), known.Deprecation.Since.Minor, known.Deprecation.Advice()))
		}
	}
	return out
}
