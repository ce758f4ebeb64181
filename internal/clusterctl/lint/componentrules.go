package lint

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
)

const injectCA = "cert-manager.io/inject-ca-from"

// componentRules are the rules of `slipway provider lint` for the objects in a components file. Their names are stable.
func componentRules() []Rule {
	return []Rule{
		{"single-namespace", "the components have one Namespace", true, singleNamespace},
		{"same-namespace", "every object is in the Namespace of the components: clusterctl moves it there", false, sameNamespace},
		{"provider-label", "every object has the label cluster.x-k8s.io/provider with the label of the provider; clusterctl sets it, kubectl does not", false, providerLabel},
		{"no-duplicates", "every object occurs only once", true, noDuplicates},
		{"service-present", "the components include the Services of webhooks", true, servicePresent},
		{"service-account-present", "the components include the ServiceAccounts of Pods and role bindings", true, accountPresent},
		{"certificate-present", "the components include the Certificates that webhooks and CRDs refer to", true, certificatePresent},
		{"no-plain-secret", "Secrets contain variables, not values", false, plainSecret},
	}
}

func (r *release) kindOf(kinds ...string) []objectInFile {
	var out []objectInFile
	for _, o := range r.objects {
		for _, kind := range kinds {
			if o.GetKind() == kind {
				out = append(out, o)
			}
		}
	}
	return out
}

// hasObject reports whether an object of a kind and name exists, in any namespace, because components have only one.
func (r *release) hasObject(kind, name string) bool {
	for _, o := range r.kindOf(kind) {
		if o.GetName() == name {
			return true
		}
	}
	return false
}

func singleNamespace(r *release, report reporter) {
	found := r.kindOf("Namespace")
	switch {
	case len(r.objects) > 0 && len(found) == 0:
		report(r.objects[0].file, "", "the components have no Namespace: every user would have to set --target-namespace")
	case len(found) > 1:
		report(found[1].file, found[1].id(), "the components also have Namespace %s: clusterctl installs a provider in only one", found[0].GetName())
	}
}

func sameNamespace(r *release, report reporter) {
	found := r.kindOf("Namespace")
	if len(found) != 1 {
		return
	}
	for _, o := range r.objects {
		if namespace := o.GetNamespace(); namespace != "" && namespace != found[0].GetName() {
			report(o.file, o.id(), "its namespace is %s, but clusterctl installs it in %s", namespace, found[0].GetName())
		}
	}
}

func providerLabel(r *release, report reporter) {
	for _, o := range r.objects {
		if got, ok := o.GetLabels()[provider.NameLabel]; !ok || got != r.label {
			report(o.file, o.id(), "the label %s is %q: set it to %s", provider.NameLabel, got, r.label)
		}
	}
}

func noDuplicates(r *release, report reporter) {
	seen := map[string]bool{}
	for _, o := range r.objects {
		key := o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
		if seen[key] {
			report(o.file, o.id(), "it occurs twice: the second object would replace the first")
		}
		seen[key] = true
	}
}

func servicePresent(r *release, report reporter) {
	check := func(o objectInFile, config map[string]any) {
		if name, ok, _ := unstructured.NestedString(config, "clientConfig", "service", "name"); ok && !r.hasObject("Service", name) {
			report(o.file, o.id(), "its Service %s is missing from the components", name)
		}
	}
	for _, o := range r.kindOf("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration") {
		for _, webhook := range mappingsAt(o.Object, "webhooks") {
			check(o, webhook)
		}
	}
	for _, o := range r.kindOf("CustomResourceDefinition") {
		if webhook, ok, _ := unstructured.NestedMap(o.Object, "spec", "conversion", "webhook"); ok {
			check(o, webhook)
		}
	}
}

func accountPresent(r *release, report reporter) {
	need := func(o objectInFile, name string) {
		if name != "" && name != "default" && !r.hasObject("ServiceAccount", name) {
			report(o.file, o.id(), "its ServiceAccount %s is missing from the components", name)
		}
	}
	for _, o := range r.kindOf("Deployment", "DaemonSet", "StatefulSet") {
		name, _, _ := unstructured.NestedString(o.Object, "spec", "template", "spec", "serviceAccountName")
		need(o, name)
	}
	for _, o := range r.kindOf("RoleBinding", "ClusterRoleBinding") {
		for _, s := range mappingsAt(o.Object, "subjects") {
			if name, _ := s["name"].(string); s["kind"] == "ServiceAccount" {
				need(o, name)
			}
		}
	}
}

func certificatePresent(r *release, report reporter) {
	for _, o := range r.objects {
		from, ok := o.GetAnnotations()[injectCA]
		if !ok {
			continue
		}
		_, name, ok := strings.Cut(from, "/")
		switch {
		case !ok || strings.Contains(name, "/"):
			report(o.file, o.id(), "the annotation %s is %q, which is not of the form NAMESPACE/NAME", injectCA, from)
		case !r.hasObject("Certificate", name):
			report(o.file, o.id(), "the annotation %s refers to Certificate %s, which is missing from the components", injectCA, name)
		}
	}
	for _, o := range r.kindOf("Certificate") {
		issuer, _, _ := unstructured.NestedString(o.Object, "spec", "issuerRef", "name")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "issuerRef", "kind")
		if kind != "ClusterIssuer" && !r.hasObject("Issuer", issuer) {
			report(o.file, o.id(), "its Issuer %q is missing from the components", issuer)
		}
	}
}

func plainSecret(r *release, report reporter) {
	for _, o := range r.kindOf("Secret") {
		if text := string(r.files[o.file]); !strings.Contains(text, "${") && (len(mapping(o.Object, "data")) > 0 || len(mapping(o.Object, "stringData")) > 0) {
			report(o.file, o.id(), "its values are the same in every installation of the provider: replace them with variables")
		}
	}
}

// mappingsAt returns the mappings in a list.
func mappingsAt(object map[string]any, path ...string) []map[string]any {
	list, _, _ := unstructured.NestedSlice(object, path...)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func mapping(object map[string]any, name string) map[string]any {
	m, _ := object[name].(map[string]any)
	return m
}
