package repository

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InstallOrder returns the objects in the order in which they can be created, dependencies first. Installations,
// upgrades and (reversed) deletions of providers use it. The sort is stable.
//
//	Namespaces                         contain the objects
//	CustomResourceDefinitions          define kinds of other objects
//	classes, quotas, limits            apply to other objects
//	ServiceAccounts, Secrets,          are used by Pods
//	ConfigMaps, volumes
//	roles, then their bindings         grant permissions to Pods
//	Services                           Pods get their addresses at startup
//	cert-manager objects               their Secrets are mounted by Pods
//	everything else                    for example Deployments
//	webhook configurations             reject writes until the webhook is available
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
