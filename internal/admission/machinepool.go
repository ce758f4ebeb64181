package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultMachinePool sets replicas, minReadySeconds, and defaults in the Machine template.
func defaultMachinePool(in, old *clusterv1.MachinePool) (runtime.Object, bool) {
	out := in.DeepCopy()
	changed := defaultClusterLabel(&out.Labels, out.Spec.ClusterName)
	if out.Spec.Replicas == nil {
		var oldReplicas *int32
		if old != nil {
			oldReplicas = old.Spec.Replicas
		}
		out.Spec.Replicas = new(defaultReplicas(out.Annotations, oldReplicas))
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

func validateMachinePool(r Request, pool *clusterv1.MachinePool) Response {
	spec := field.NewPath("spec")
	template := spec.Child("template")
	machine := pool.Spec.Template.Spec
	var errs field.ErrorList
	if old, isUpdate := r.Old.(*clusterv1.MachinePool); isUpdate {
		errs = append(errs, validateSame(old.Spec.ClusterName, pool.Spec.ClusterName, spec.Child("clusterName"))...)
	}
	if machine.ClusterName != pool.Spec.ClusterName && !isSame(r.Old, func(old *clusterv1.MachinePool) bool {
		return old.Spec.Template.Spec.ClusterName == machine.ClusterName
	}) {
		errs = append(errs, field.Invalid(template.Child("spec", "clusterName"), machine.ClusterName, "must be the same as spec.clusterName"))
	}
	errs = append(errs, validateReplicas(r, pool.Spec.Replicas, replicasOf(r.Old), spec.Child("replicas"))...)
	errs = append(errs, validateAutoscaler(r)...)
	errs = append(errs, pool.Spec.Template.ObjectMeta.Validate(template.Child("metadata"))...)
	errs = append(errs, validateBootstrap(machine.Bootstrap, template.Child("spec", "bootstrap"))...)
	errs = append(errs, validateVersion(machine.Version, template.Child("spec", "version"))...)
	errs = append(errs, validateTaints(machine.Taints, taintRules{gates: r.Gates}, template.Child("spec", "taints"))...)
	return Response{Errors: errs}
}

// isSame reports whether the compared value is unchanged on update.
func isSame[T runtime.Object](old runtime.Object, compare func(T) bool) bool {
	before, isUpdate := old.(T)
	return isUpdate && compare(before)
}
