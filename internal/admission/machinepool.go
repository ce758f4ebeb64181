package admission

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultMachinePool sets replicas, minReadySeconds, and defaults in the Machine template, for [Default]. They are
// Cluster API's defaults.
func defaultMachinePool(r Request, pool *clusterv1.MachinePool) {
	defaultClusterLabel(pool, pool.Spec.ClusterName)
	setReplicas(&pool.Spec.Replicas, pool.Annotations, r.Old)
	if pool.Spec.Template.Spec.MinReadySeconds == nil {
		pool.Spec.Template.Spec.MinReadySeconds = new(int32(0))
	}
	defaultMachineSpec(&pool.Spec.Template.Spec)
}

// validateMachinePool validates a MachinePool for [Validate], on create and update.
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
	errs = append(errs, validateMachineTemplate(pool.Spec.Template, taintRules{gates: r.Gates}, template)...)
	return Response{Errors: errs}
}

// isSame reports whether the compared value is unchanged on update.
func isSame[T runtime.Object](old runtime.Object, compare func(T) bool) bool {
	before, isUpdate := old.(T)
	return isUpdate && compare(before)
}
