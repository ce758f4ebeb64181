package admission

import (
	"fmt"
	"strconv"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/admission/managed"
)

// defaultReplicas is the number of replicas where none is set: 1, or where an autoscaler is in charge (both
// of its annotations are whole numbers) its lower limit for a new object, and for an old one the number that it had,
// within the limits. old is nil for a new object, and for one that had no number.
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

// validateReplicas refuses a negative number, and to ask for more than the operator allows; what is there already may stay, and
// become less. Unset is valid.
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

// autoscalerLimit reads an annotation of the autoscaler; nil when it is not there.
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

// validateAutoscaler checks the autoscaler's annotations. What was stored once may stay.
func validateAutoscaler(r Request) field.ErrorList {
	now, ok := r.New.(metav1.Object)
	if !ok {
		return nil
	}
	var before map[string]string
	if old, isUpdate := r.Old.(metav1.Object); isUpdate {
		before = old.GetAnnotations()
	}
	return managed.ValidateLimits(now.GetAnnotations(), before, field.NewPath("metadata", "annotations"))
}

// replicasOf is the number of replicas that an object asks for; nil where it asks for none, or does not exist.
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

// validateScale checks what the scale subresource of one of these kinds is set to. The API server itself refuses a negative
// number there.
func validateScale(r Request, scale *autoscalingv1.Scale) Verdict {
	var before *int32
	if old, isUpdate := r.Old.(*autoscalingv1.Scale); isUpdate {
		before = &old.Spec.Replicas
	}
	path := field.NewPath("spec", "replicas")
	errs := validateReplicas(r, &scale.Spec.Replicas, before, path)
	if plane := r.Facts.Scaled; plane != nil {
		errs = append(errs, validateControlPlaneCount(scale.Spec.Replicas, plane.Spec, path)...)
	}
	var warnings []string
	if by := r.Facts.SetBack; by != nil && by.Replicas != scale.Spec.Replicas {
		warnings = []string{fmt.Sprintf("%s: the topology of Cluster %s has replicas: %d for MachineDeployment %s, which replaces the %d that are asked for here; change it in spec.topology.workers.machineDeployments of the Cluster, or remove it there to scale here",
			path, by.Cluster, by.Replicas, by.Topology, scale.Spec.Replicas)}
	}
	return Verdict{Errors: errs, Warnings: warnings}
}
