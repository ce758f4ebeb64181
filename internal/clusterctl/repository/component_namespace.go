package repository

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/fault"
)

const (
	certManagerGroup = "cert-manager.io"
	// injectCA is the annotation with the namespace/name of the Certificate whose CA is injected into a webhook.
	injectCA = "cert-manager.io/inject-ca-from"
)

func isNamespace(o *unstructured.Unstructured) bool {
	return o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: "Namespace"}
}

// clusterScoped are well-known cluster-scoped kinds of any group.
func clusterScoped() []string {
	return []string{
		"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterIssuer", "ClusterRole", "ClusterRoleBinding",
		"CustomResourceDefinition", "DeviceClass", "FlowSchema", "IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PodSecurityPolicy", "PriorityClass",
		"PriorityLevelConfiguration", "RuntimeClass", "StorageClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"ValidatingWebhookConfiguration", "VolumeAttachment",
	}
}

// ownScopes returns, for the kinds of the CRDs in the file, whether they are namespaced.
func ownScopes(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		out[schema.GroupKind{Group: group, Kind: kind}] = scope != "Cluster"
	}
	return out
}

// SetNamespace moves all namespaced objects into the namespace, for cluster templates (package template). A Namespace
// among the objects gets its name.
func SetNamespace(objects []*unstructured.Unstructured, namespace string) {
	own := ownScopes(objects)
	for _, o := range objects {
		if isNamespace(o) {
			o.SetName(namespace)
		}
		if isNamespaced(o, own) {
			o.SetNamespace(namespace)
		}
	}
}

// isNamespaced reports whether the kind of the object is namespaced.
func isNamespaced(o *unstructured.Unstructured, own map[schema.GroupKind]bool) bool {
	if namespaced, known := own[o.GroupVersionKind().GroupKind()]; known {
		return namespaced
	}
	return !slices.Contains(clusterScoped(), o.GetKind())
}

// moveToNamespace moves one object of a provider and its references to the target namespace, as clusterctl does.
// [newComponents] calls it.
func moveToNamespace(o *unstructured.Unstructured, target string, own map[schema.GroupKind]bool) error {
	before := o.GetNamespace()
	if isNamespace(o) {
		o.SetName(target)
	}
	if isNamespaced(o, own) {
		o.SetNamespace(target)
	}
	switch o.GetKind() {
	case "ClusterRoleBinding", "RoleBinding":
		each(o.Object, "subjects", func(subject map[string]any) {
			if namespace, _ := subject["namespace"].(string); namespace != "" {
				subject["namespace"] = target
			}
		})
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		each(o.Object, "webhooks", func(webhook map[string]any) { moveService(webhook, target, "clientConfig", "service") })
		return moveInjectCA(o, target)
	case "CustomResourceDefinition":
		moveService(o.Object, target, "spec", "conversion", "webhook", "clientConfig", "service")
		return moveInjectCA(o, target)
	case "Certificate":
		moveNames(o, before, target)
	}
	return nil
}

// each calls do for the mappings in a list.
func each(object map[string]any, list string, do func(map[string]any)) {
	items, _ := object[list].([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			do(m)
		}
	}
}

// moveService sets the namespace of a service reference, if it exists.
func moveService(object map[string]any, target string, path ...string) {
	if service, ok, err := unstructured.NestedMap(object, path...); ok && err == nil {
		service["namespace"] = target
		_ = unstructured.SetNestedMap(object, service, path...) // the path exists
	}
}

// moveInjectCA sets the namespace in the CA injection annotation.
func moveInjectCA(o *unstructured.Unstructured, target string) error {
	annotations := o.GetAnnotations()
	from, ok := annotations[injectCA]
	if !ok {
		return nil
	}
	_, name, ok := strings.Cut(from, "/")
	if !ok || strings.Contains(name, "/") {
		return fault.New(fault.Invalid, ReasonComponents, "the annotation %s of %s %s is %q, which is not of the form NAMESPACE/NAME; correct the file, or override it", injectCA, o.GetKind(), o.GetName(), from)
	}
	annotations[injectCA] = target + "/" + name
	o.SetAnnotations(annotations)
	return nil
}

// moveNames replaces the namespace in the DNS names of a Certificate that refer to Services.
func moveNames(o *unstructured.Unstructured, before, target string) {
	if o.GroupVersionKind().Group != certManagerGroup || before == "" {
		return
	}
	names, ok, err := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
	if !ok || err != nil {
		return
	}
	for i, name := range names {
		names[i] = strings.Replace(name, "."+before+".svc", "."+target+".svc", 1)
	}
	_ = unstructured.SetNestedStringSlice(o.Object, names, "spec", "dnsNames") // the path exists
}
