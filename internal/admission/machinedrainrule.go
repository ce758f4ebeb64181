package admission

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// validateMachineDrainRule validates, for [Validate], rules for a MachineDrainRule that are not in the CRD: only
// drained Pods may have an order, and every selector must be valid, because a drain stops at an invalid rule.
// Behaviors, and the number and uniqueness of entries, are validated by the CRD.
func validateMachineDrainRule(rule *clusterv1.MachineDrainRule) Response {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	readable := func(s *metav1.LabelSelector, path *field.Path) {
		if s == nil {
			return
		}
		if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
			errs = append(errs, field.Invalid(path, *s, err.Error()))
		}
	}
	if c := rule.Spec.Drain; c.Order != nil && c.Behavior != clusterv1.MachineDrainRuleDrainBehaviorDrain {
		errs = append(errs, field.Forbidden(spec.Child("drain", "order"), "can be set only if behavior is Drain"))
	}
	for i, m := range rule.Spec.Machines {
		path := spec.Child("machines").Index(i)
		readable(m.Selector, path.Child("selector"))
		readable(m.ClusterSelector, path.Child("clusterSelector"))
	}
	for i, p := range rule.Spec.Pods {
		path := spec.Child("pods").Index(i)
		readable(p.Selector, path.Child("selector"))
		readable(p.NamespaceSelector, path.Child("namespaceSelector"))
	}
	return Response{Errors: errs}
}
