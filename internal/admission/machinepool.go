package admission

import (
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultMachinePool sets replicas, minReadySeconds, and what the Machines of the pool get (MP-15).
func defaultMachinePool(in, old *clusterv1.MachinePool) (runtime.Object, bool) {
	out := in.DeepCopy()
	changed := defaultClusterLabel(&out.Labels, out.Spec.ClusterName)
	if out.Spec.Replicas == nil {
		out.Spec.Replicas = new(defaultReplicas(out, old))
		changed = true
	}
	if out.Spec.Template.Spec.MinReadySeconds == nil {
		out.Spec.Template.Spec.MinReadySeconds = new(int32(0))
		changed = true
	}
	if defaultMachineSpec(&out.Spec.Template.Spec) {
		changed = true
	}
	if !changed {
		return in, false
	}
	return out, true
}

// defaultReplicas is 1, or where an autoscaler is in charge (its two annotations are there) the number that is
// now, within the autoscaler's limits.
func defaultReplicas(pool, old *clusterv1.MachinePool) int32 {
	lowest, err := autoscalerLimit(pool, clusterv1.AutoscalerMinSizeAnnotation)
	if err != nil || lowest == nil {
		return 1
	}
	highest, err := autoscalerLimit(pool, clusterv1.AutoscalerMaxSizeAnnotation)
	if err != nil || highest == nil {
		return 1
	}
	if old == nil || old.Spec.Replicas == nil {
		return *lowest
	}
	return min(max(*old.Spec.Replicas, *lowest), *highest)
}

// autoscalerLimit reads an annotation of the autoscaler; nil when it is not there.
func autoscalerLimit(pool *clusterv1.MachinePool, annotation string) (*int32, error) {
	text, ok := pool.Annotations[annotation]
	if !ok {
		return nil, nil
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, err
	}
	return new(int32(number)), nil
}

func validateMachinePool(r Request, pool *clusterv1.MachinePool) Verdict {
	spec := field.NewPath("spec")
	template := spec.Child("template")
	machine := pool.Spec.Template.Spec
	var errs field.ErrorList
	if old, isUpdate := r.Old.(*clusterv1.MachinePool); isUpdate {
		errs = append(errs, validateSame(old.Spec.ClusterName, pool.Spec.ClusterName, spec.Child("clusterName"))...)
	}
	errs = append(errs, validateAutoscaler(pool)...)
	errs = append(errs, pool.Spec.Template.ObjectMeta.Validate(template.Child("metadata"))...)
	errs = append(errs, validateBootstrap(machine.Bootstrap, template.Child("spec", "bootstrap"))...)
	errs = append(errs, validateVersion(machine.Version, template.Child("spec", "version"))...)
	errs = append(errs, validateTaints(machine.Taints, taintRules{gates: r.Gates}, template.Child("spec", "taints"))...)
	return Verdict{Errors: errs}
}

// validateAutoscaler checks the autoscaler's annotations, which the default of replicas depends on.
func validateAutoscaler(pool *clusterv1.MachinePool) field.ErrorList {
	var errs field.ErrorList
	for _, annotation := range []string{clusterv1.AutoscalerMinSizeAnnotation, clusterv1.AutoscalerMaxSizeAnnotation} {
		if _, err := autoscalerLimit(pool, annotation); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(annotation),
				pool.Annotations[annotation], "must be a whole number"))
		}
	}
	return errs
}
