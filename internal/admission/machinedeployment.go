package admission

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/naming"
)

// defaultMachineDeployment sets replicas, selector, rollout strategy, and defaults in the Machine template, for
// [Default]. They are Cluster API's defaults.
func defaultMachineDeployment(r Request, d *clusterv1.MachineDeployment) {
	defaultClusterLabel(d, d.Spec.ClusterName)
	setReplicas(&d.Spec.Replicas, d.Annotations, r.Old)
	defaultSelector(d)
	defaultStrategy(&d.Spec.Rollout.Strategy)
	defaultMachineSpec(&d.Spec.Template.Spec)
}

// defaultSelector adds the cluster name label to the selector and the template labels, and, if the selector was empty,
// the deployment name label.
func defaultSelector(d *clusterv1.MachineDeployment) {
	add := map[string]string{}
	if d.Spec.ClusterName != "" {
		add[clusterv1.ClusterNameLabel] = d.Spec.ClusterName
	}
	if isEmptySelector(d.Spec.Selector) {
		add[clusterv1.MachineDeploymentNameLabel] = d.Name
	}
	addLabels(&d.Spec.Selector.MatchLabels, add)
	addLabels(&d.Spec.Template.Labels, add)
}

func addLabels(to *map[string]string, add map[string]string) {
	if *to == nil && len(add) > 0 {
		*to = map[string]string{}
	}
	maps.Copy(*to, add)
}

// defaultStrategy sets the strategy RollingUpdate with maxSurge 1 and maxUnavailable 0.
func defaultStrategy(s *clusterv1.MachineDeploymentRolloutStrategy) {
	s.Type = cmp.Or(s.Type, clusterv1.RollingUpdateMachineDeploymentStrategyType)
	if s.Type != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		return
	}
	if s.RollingUpdate.MaxSurge == nil {
		s.RollingUpdate.MaxSurge = new(intstr.FromInt32(1))
	}
	if s.RollingUpdate.MaxUnavailable == nil {
		s.RollingUpdate.MaxUnavailable = new(intstr.FromInt32(0))
	}
}

// validateMachineDeployment validates a MachineDeployment for [Validate], on create and update.
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
	errs = append(errs, validateMachineTemplate(d.Spec.Template, taintRules{gates: r.Gates}, template)...)
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
			"must not be 0 if maxSurge is 0, because no Machine could be replaced"))
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
		return field.ErrorList{field.Invalid(path, v.String(), "must be a non-negative whole number or percentage, for example 1 or 25%")}
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
	return validateNaming(n.Template, naming.Values{"cluster": {"name": "cluster"}, "machineSet": {"name": "machineset"}}, naming.Parse, path)
}

// validateNaming checks with example values that a name template generates valid names.
func validateNaming(text string, values naming.Values, parse func(string, naming.Values) (naming.Template, error), path *field.Path) field.ErrorList {
	if text == "" {
		return nil
	}
	var name string
	template, err := parse(text, values)
	if err == nil {
		name, err = template.Name(values, "bcdfg")
	}
	if err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return field.ErrorList{field.Invalid(path, text, fmt.Sprintf("generates invalid names, such as %q: %s", name, strings.Join(problems, "; ")))}
	}
	return nil
}
