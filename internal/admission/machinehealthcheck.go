package admission

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// minNodeStartupTimeoutSeconds is the minimum Node startup timeout, unless the check is off. No Node starts faster, so
// a lower value would remediate every Machine forever.
const minNodeStartupTimeoutSeconds = 30

// defaultMachineHealthCheck sets the cluster label and Cluster API's default for the Node startup timeout, for
// [Default].
func defaultMachineHealthCheck(check *clusterv1.MachineHealthCheck) {
	defaultClusterLabel(check, check.Spec.ClusterName)
	if check.Spec.Checks.NodeStartupTimeoutSeconds == nil {
		check.Spec.Checks.NodeStartupTimeoutSeconds = new(clusterv1.DefaultNodeStartupTimeoutSeconds)
	}
}

// validateMachineHealthCheck validates a MachineHealthCheck for [Validate]. The rules for checks and limits also hold
// for ClusterClasses.
func validateMachineHealthCheck(r Request, check *clusterv1.MachineHealthCheck) Response {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if old, isUpdate := r.Old.(*clusterv1.MachineHealthCheck); isUpdate {
		errs = append(errs, validateSame(old.Spec.ClusterName, check.Spec.ClusterName, spec.Child("clusterName"))...)
	}
	errs = append(errs, validateSelector(check.Spec.Selector, spec.Child("selector"))...)
	if cluster, ok := check.Spec.Selector.MatchLabels[clusterv1.ClusterNameLabel]; ok && cluster != check.Spec.ClusterName {
		errs = append(errs, field.Invalid(spec.Child("selector", "matchLabels").Key(clusterv1.ClusterNameLabel), cluster,
			"must be spec.clusterName or unset, because Machines of another Cluster are not checked"))
	}
	errs = append(errs, validateCheck(healthCheck{check.Spec.Checks.NodeStartupTimeoutSeconds, check.Spec.Remediation.TriggerIf}, spec)...)
	return Response{Errors: errs}
}

// validateTrigger checks that the limits for remediation can be parsed. The health checks of classes and topologies are
// validated with it, too.
func validateTrigger(trigger clusterv1.MachineHealthCheckRemediationTriggerIf, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if most := trigger.UnhealthyLessThanOrEqualTo; most != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(most, 100, false); err != nil || n < 0 {
			errs = append(errs, field.Invalid(path.Child("unhealthyLessThanOrEqualTo"), most.String(),
				"must be a non-negative number or a percentage such as 40%"))
		}
	}
	if text := trigger.UnhealthyInRange; text != "" {
		var lowest, highest int
		if n, err := fmt.Sscanf(text, "[%d-%d]", &lowest, &highest); err != nil || n != 2 || highest < lowest {
			errs = append(errs, field.Invalid(path.Child("unhealthyInRange"), text, "must be a range such as [1-5], with the smaller number first"))
		}
	}
	return errs
}

// validateSelector checks that a selector is valid and not empty.
func validateSelector(selector metav1.LabelSelector, path *field.Path) field.ErrorList {
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, selector, err.Error())}
	case parsed.Empty():
		return field.ErrorList{field.Required(path, "must select by at least one label")}
	}
	return nil
}
