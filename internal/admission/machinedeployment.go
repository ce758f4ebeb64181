package admission

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
)

// defaultMachineDeployment sets replicas, selector, rollout strategy, and defaults in the Machine template.
func defaultMachineDeployment(in, old *clusterv1.MachineDeployment) (runtime.Object, bool) {
	out := in.DeepCopy()
	changed := defaultClusterLabel(&out.Labels, out.Spec.ClusterName)
	if out.Spec.Replicas == nil {
		var had *int32
		if old != nil {
			had = old.Spec.Replicas
		}
		out.Spec.Replicas = new(defaultReplicas(out.Annotations, had))
		changed = true
	}
	for _, set := range []func() bool{
		func() bool { return defaultSelector(out) },
		func() bool { return defaultStrategy(&out.Spec.Rollout.Strategy) },
		func() bool { return defaultMachineSpec(&out.Spec.Template.Spec) },
	} {
		if set() {
			changed = true
		}
	}
	if !changed {
		return in, false
	}
	return out, true
}

// defaultSelector adds the cluster name label to the selector and the template labels, and, if the selector was empty,
// the deployment name label. It reports whether that changed anything.
func defaultSelector(d *clusterv1.MachineDeployment) bool {
	add := map[string]string{}
	if d.Spec.ClusterName != "" {
		add[clusterv1.ClusterNameLabel] = d.Spec.ClusterName
	}
	if len(d.Spec.Selector.MatchLabels) == 0 && len(d.Spec.Selector.MatchExpressions) == 0 {
		add[clusterv1.MachineDeploymentNameLabel] = d.Name
	}
	selector, template := addLabels(&d.Spec.Selector.MatchLabels, add), addLabels(&d.Spec.Template.Labels, add)
	return selector || template
}

// addLabels adds labels, and reports whether that changed anything.
func addLabels(to *map[string]string, add map[string]string) bool {
	before := len(*to)
	changed := false
	for key, value := range add {
		changed = changed || (*to)[key] != value
	}
	if !changed {
		return false
	}
	if before == 0 {
		*to = map[string]string{}
	}
	maps.Copy(*to, add)
	return true
}

// defaultStrategy sets the strategy RollingUpdate with maxSurge 1 and maxUnavailable 0, and reports whether that
// changed anything.
func defaultStrategy(s *clusterv1.MachineDeploymentRolloutStrategy) bool {
	changed := false
	if s.Type == "" {
		s.Type, changed = clusterv1.RollingUpdateMachineDeploymentStrategyType, true
	}
	if s.Type != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return changed
	}
	if s.RollingUpdate.MaxSurge == nil {
		s.RollingUpdate.MaxSurge, changed = new(intstr.FromInt32(1)), true
	}
	if s.RollingUpdate.MaxUnavailable == nil {
		s.RollingUpdate.MaxUnavailable, changed = new(intstr.FromInt32(0)), true
	}
	return changed
}

func validateMachineDeployment(r Request, d *clusterv1.MachineDeployment) Response {
	spec := field.NewPath("spec")
	template := spec.Child("template")
	machine := d.Spec.Template.Spec
	var errs field.ErrorList
	if old, isUpdate := r.Old.(*clusterv1.MachineDeployment); isUpdate {
		errs = append(errs, validateSame(old.Spec.ClusterName, d.Spec.ClusterName, spec.Child("clusterName"))...)
	}
	for _, problem := range validation.IsValidLabelValue(d.Name) { // the name is a label value of Machines
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), d.Name, "must be a valid label value: "+problem))
	}
	if machine.ClusterName != d.Spec.ClusterName {
		errs = append(errs, field.Invalid(template.Child("spec", "clusterName"), machine.ClusterName, "must be the same as spec.clusterName"))
	}
	errs = append(errs, validateReplicas(r, d.Spec.Replicas, replicasOf(r.Old), spec.Child("replicas"))...)
	errs = append(errs, validateAutoscaler(r)...)
	errs = append(errs, validateSkippedChecks(d.Annotations)...) // copied to MachineSets
	errs = append(errs, validateTemplateSelector(d.Spec.Selector, d.Spec.Template.Labels, spec)...)
	errs = append(errs, validateStrategy(d.Spec.Rollout.Strategy, spec.Child("rollout", "strategy"))...)
	errs = append(errs, validateAmount(d.Spec.Remediation.MaxInFlight, spec.Child("remediation", "maxInFlight"))...)
	errs = append(errs, validateMachineNaming(d.Spec.MachineNaming, spec.Child("machineNaming", "template"))...)
	errs = append(errs, d.Spec.Template.ObjectMeta.Validate(template.Child("metadata"))...)
	errs = append(errs, validateBootstrap(machine.Bootstrap, template.Child("spec", "bootstrap"))...)
	errs = append(errs, validateVersion(machine.Version, template.Child("spec", "version"))...)
	errs = append(errs, validateTaints(machine.Taints, taintRules{gates: r.Gates}, template.Child("spec", "taints"))...)
	return Response{Errors: errs, Warnings: strategyWarnings(d.Spec.Rollout.Strategy)}
}

// validateTemplateSelector checks that a selector is valid and matches the labels of the template.
func validateTemplateSelector(s metav1.LabelSelector, template map[string]string, spec *field.Path) field.ErrorList {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return field.ErrorList{field.Invalid(spec.Child("selector"), s, err.Error())}
	}
	if !selector.Matches(labels.Set(template)) {
		return field.ErrorList{field.Invalid(spec.Child("template", "metadata", "labels"), template,
			"must match spec.selector "+metav1.FormatLabelSelector(&s))}
	}
	return nil
}

// validateStrategy validates maxSurge and maxUnavailable.
func validateStrategy(s clusterv1.MachineDeploymentRolloutStrategy, path *field.Path) field.ErrorList {
	rolling := path.Child("rollingUpdate")
	errs := validateAmount(s.RollingUpdate.MaxSurge, rolling.Child("maxSurge"))
	errs = append(errs, validateAmount(s.RollingUpdate.MaxUnavailable, rolling.Child("maxUnavailable"))...)
	if isNone(s.RollingUpdate.MaxSurge) && isNone(s.RollingUpdate.MaxUnavailable) {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), s.RollingUpdate.MaxUnavailable.String(),
			"must not be 0 when maxSurge is 0: no Machine could be replaced"))
	}
	return errs
}

// strategyWarnings warns about settings without effect.
func strategyWarnings(s clusterv1.MachineDeploymentRolloutStrategy) []string {
	if s.Type == clusterv1.OnDeleteMachineDeploymentStrategyType && (s.RollingUpdate.MaxSurge != nil || s.RollingUpdate.MaxUnavailable != nil) {
		return []string{"spec.rollout.strategy.rollingUpdate has no effect with the strategy OnDelete"}
	}
	return nil
}

// validateAmount validates a number or a percentage; unset is valid.
func validateAmount(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	if n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true); err != nil || n < 0 {
		return field.ErrorList{field.Invalid(path, v.String(), "must be a whole number or a percentage, for example 1 or 25%, and not negative")}
	}
	return nil
}

func isNone(v *intstr.IntOrString) bool {
	if v == nil {
		return false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, true)
	return err == nil && n == 0
}

// validateMachineNaming checks that a name template generates unique and valid names.
func validateMachineNaming(n clusterv1.MachineNamingSpec, path *field.Path) field.ErrorList {
	return validateNames(n.Template, naming.Values{"cluster": {"name": "cluster"}, "machineSet": {"name": "machineset"}}, path)
}

// validateNames validates a name template with example values.
func validateNames(template string, values naming.Values, path *field.Path) field.ErrorList {
	if template == "" {
		return nil
	}
	parsed, err := naming.Parse(template, values)
	if err == nil {
		var name string
		if name, err = parsed.Name(values, "bcdfg"); err == nil {
			for _, problem := range validation.IsDNS1123Subdomain(name) {
				return field.ErrorList{field.Invalid(path, template, "makes names that no object can have: "+problem)}
			}
			return nil
		}
	}
	return field.ErrorList{field.Invalid(path, template, err.Error())}
}
