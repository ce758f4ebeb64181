package admission

import (
	"fmt"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultReplicas returns the default number of replicas of a MachineDeployment, MachineSet or MachinePool, which is
// Cluster API's default: 1, or, if both limits of the autoscaler are set to whole numbers, the lower limit on create,
// and the previous number within the limits on update. old is nil on create, and if there was no previous number.
func defaultReplicas(annotations map[string]string, old *int32) int32 {
	lowest, err := autoscalerLimit(annotations, clusterv1.AutoscalerMinSizeAnnotation)
	if err != nil || lowest == nil {
		return 1
	}
	highest, err := autoscalerLimit(annotations, clusterv1.AutoscalerMaxSizeAnnotation)
	if err != nil || highest == nil {
		return 1
	}
	if old == nil {
		return *lowest
	}
	return min(max(*old, *lowest), *highest)
}

// setReplicas sets the default number of replicas if there is none. The defaulting of MachineDeployments, MachineSets
// and MachinePools calls it.
func setReplicas(replicas **int32, annotations map[string]string, old runtime.Object) {
	if *replicas == nil {
		*replicas = new(defaultReplicas(annotations, replicasOf(old)))
	}
}

// validateReplicas rejects a negative number, and an increase above the limit in the operator's policy; an existing
// number may remain or decrease. Unset is valid.
func validateReplicas(r Request, n, old *int32, path *field.Path) field.ErrorList {
	switch {
	case n == nil:
	case *n < 0:
		return field.ErrorList{field.Invalid(path, *n, "must not be negative")}
	case old == nil || *n > *old:
		if denied := r.Policy.DeniedReplicas(*n); denied != "" {
			return field.ErrorList{field.Forbidden(path, denied)}
		}
	}
	return nil
}

// autoscalerLimit parses an annotation of the autoscaler; nil if it is not set.
func autoscalerLimit(annotations map[string]string, name string) (*int32, error) {
	text, ok := annotations[name]
	if !ok {
		return nil, nil
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return nil, err
	}
	return new(int32(number)), nil
}

// validateAutoscaler validates the autoscaler's annotations. Unchanged values are accepted. The validation of
// MachineDeployments, MachineSets and MachinePools calls it.
func validateAutoscaler(r Request) field.ErrorList {
	now, ok := r.New.(metav1.Object)
	if !ok {
		return nil
	}
	var before map[string]string
	if old, isUpdate := r.Old.(metav1.Object); isUpdate {
		before = old.GetAnnotations()
	}
	return validateLimits(now.GetAnnotations(), before, field.NewPath("metadata", "annotations"))
}

// replicasOf returns the replicas in the spec of an object; nil if they are not set, or the object is nil.
func replicasOf(object runtime.Object) *int32 {
	switch o := object.(type) {
	case *clusterv1.MachineDeployment:
		return o.Spec.Replicas
	case *clusterv1.MachineSet:
		return o.Spec.Replicas
	case *clusterv1.MachinePool:
		return o.Spec.Replicas
	}
	return nil
}

// validateScale validates a write to the scale subresource, as by `kubectl scale` or an autoscaler, for [Validate]. The
// API server itself rejects negative numbers there.
func validateScale(r Request, scale *autoscalingv1.Scale) Response {
	var before *int32
	if old, isUpdate := r.Old.(*autoscalingv1.Scale); isUpdate {
		before = &old.Spec.Replicas
	}
	path := field.NewPath("spec", "replicas")
	errs := validateReplicas(r, &scale.Spec.Replicas, before, path)
	if plane := r.Related.Scaled; plane != nil {
		errs = append(errs, validateControlPlaneCount(scale.Spec.Replicas, plane.Spec, path)...)
	}
	var warnings []string
	if by := r.Related.ReplicasOwner; by != nil && by.Replicas != scale.Spec.Replicas {
		warnings = []string{fmt.Sprintf("%s: the topology of Cluster %s has replicas: %d for MachineDeployment %s, which overwrites the requested %d; change or remove replicas in spec.topology.workers.machineDeployments of the Cluster",
			path, by.Cluster, by.Replicas, by.Topology, scale.Spec.Replicas)}
	}
	return Response{Errors: errs, Warnings: warnings}
}
