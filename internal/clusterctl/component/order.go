package component

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InstallOrder is the order in which objects can be created: each after what it needs.
//
//	Namespaces                         everything lives in them
//	CustomResourceDefinitions          define kinds of what follows
//	classes, quotas, limits            hold for what follows
//	ServiceAccounts, Secrets,          are used by Pods
//	ConfigMaps, volumes
//	roles, then their bindings         allow what Pods do
//	Services                           Pods know their addresses from the start
//	objects of cert-manager            their Secrets are mounted by Pods
//	everything else                    Deployments among it
//	webhook configurations             refuse writes until someone answers
//
// Among those of one rank the order stays.
func InstallOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := slices.Clone(objects)
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return out
}

func rank(o *unstructured.Unstructured) int {
	if o.GroupVersionKind().Group == certManagerGroup {
		if o.GetKind() == "Certificate" {
			return 8 // after its issuer
		}
		return 7
	}
	switch o.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	case "StorageClass", "PriorityClass", "RuntimeClass", "IngressClass", "ResourceQuota", "LimitRange":
		return 2
	case "ServiceAccount", "Secret", "ConfigMap", "PersistentVolume", "PersistentVolumeClaim":
		return 3
	case "ClusterRole", "Role":
		return 4
	case "ClusterRoleBinding", "RoleBinding":
		return 5
	case "Service":
		return 6
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MutatingAdmissionPolicy", "ValidatingAdmissionPolicy",
		"MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicyBinding", "APIService":
		return 10
	}
	return 9
}
