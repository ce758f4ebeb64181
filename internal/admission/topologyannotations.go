package admission

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology"
)

// annotations validates the annotations that the topology of a Cluster sets on its objects, as part of the Cluster's
// validation. Existing annotations are accepted, so that the Cluster can still be updated, but objects do not get them.
func (r TopologyRequest) annotations(path *field.Path) field.ErrorList {
	var old clusterv1.Topology
	if r.Old != nil {
		old = r.Old.Spec.Topology
	}
	now := r.New.Spec.Topology
	errs := validateSteering(now.ControlPlane.Metadata.Annotations, old.ControlPlane.Metadata.Annotations, path.Child("controlPlane", "metadata", "annotations"))
	before := map[topology.Key]map[string]string{}
	for _, w := range topology.Workers(old) {
		before[w.Key] = w.Metadata.Annotations
	}
	for _, w := range topology.Workers(now) {
		at := w.Path(path).Child("metadata", "annotations")
		errs = append(errs, validateSteering(w.Metadata.Annotations, before[w.Key], at)...)
		errs = append(errs, validateLimits(w.Metadata.Annotations, before[w.Key], at)...)
	}
	return errs
}

// validateSteering rejects annotations that control the behavior of controllers.
func validateSteering(now, before map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if !isUnchanged(name, now, before) && topology.IsControlAnnotation(name) {
			errs = append(errs, field.Forbidden(path.Key(name),
				"cannot be set by a topology, because it controls how controllers treat the object: set it on the object itself"))
		}
	}
	return errs
}

// validateLimits validates the limits of an autoscaler, because the default for replicas is derived from them.
func validateLimits(now, before map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []string{clusterv1.AutoscalerMinSizeAnnotation, clusterv1.AutoscalerMaxSizeAnnotation} {
		text, has := now[name]
		if !has || isUnchanged(name, now, before) {
			continue
		}
		if _, err := strconv.ParseInt(text, 10, 32); err != nil {
			errs = append(errs, field.Invalid(path.Key(name), text, "must be a whole number"))
		}
	}
	return errs
}

// isUnchanged reports whether an annotation has its previous value.
func isUnchanged(name string, now, before map[string]string) bool {
	was, had := before[name]
	return had && was == now[name]
}
