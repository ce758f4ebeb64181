package admission

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultReplicas is the number of replicas where none is set (MS-22, AS-01): 1, or where an autoscaler is in charge (both
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

// validateReplicas refuses a negative number; unset is valid.
func validateReplicas(n *int32, path *field.Path) field.ErrorList {
	if n != nil && *n < 0 {
		return field.ErrorList{field.Invalid(path, *n, "must not be negative")}
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

// validateAutoscaler checks the autoscaler's annotations, which the default of replicas depends on.
func validateAutoscaler(annotations map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []string{clusterv1.AutoscalerMinSizeAnnotation, clusterv1.AutoscalerMaxSizeAnnotation} {
		if _, err := autoscalerLimit(annotations, name); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(name), annotations[name], "must be a whole number"))
		}
	}
	return errs
}
