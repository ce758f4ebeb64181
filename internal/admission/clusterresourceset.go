package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
)

// validateClusterResourceSet rejects, for [Validate], an empty selector, and changes of the selector and strategy,
// which determine where and how resources have already been applied.
func validateClusterResourceSet(r Request, set *addonsv1.ClusterResourceSet) Response {
	spec := field.NewPath("spec")
	errs := validateSelector(set.Spec.ClusterSelector, spec.Child("clusterSelector"))
	if old, isUpdate := r.Old.(*addonsv1.ClusterResourceSet); isUpdate {
		errs = append(errs, validateSame(metav1.FormatLabelSelector(&old.Spec.ClusterSelector),
			metav1.FormatLabelSelector(&set.Spec.ClusterSelector), spec.Child("clusterSelector"))...)
		if old.Spec.Strategy != "" {
			errs = append(errs, validateSame(old.Spec.Strategy, set.Spec.Strategy, spec.Child("strategy"))...)
		}
	}
	return Response{Errors: errs}
}

// validateClusterResourceSetBinding rejects a change of the cluster. [Validate] calls it.
func validateClusterResourceSetBinding(r Request, binding *addonsv1.ClusterResourceSetBinding) Response {
	old, isUpdate := r.Old.(*addonsv1.ClusterResourceSetBinding)
	if !isUpdate || old.Spec.ClusterName == "" {
		return Response{}
	}
	return Response{Errors: validateSame(old.Spec.ClusterName, binding.Spec.ClusterName, field.NewPath("spec", "clusterName"))}
}
