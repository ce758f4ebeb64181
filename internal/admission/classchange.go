package admission

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology"
)

// checkCompatible validates a change of a Cluster from one ClusterClass to another, or a change of a ClusterClass
// itself: templates must have the same kind, because existing objects of Clusters cannot change their kind.
// [validateClass] calls it for an update, and [TopologyRequest.validateClassChange] for a Cluster with another class.
func checkCompatible(old, now *clusterv1.ClusterClass) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSameKind(old.Spec.Infrastructure.TemplateRef, now.Spec.Infrastructure.TemplateRef, spec.Child("infrastructure", "templateRef"))
	control := spec.Child("controlPlane")
	errs = append(errs, validateSameKind(old.Spec.ControlPlane.TemplateRef, now.Spec.ControlPlane.TemplateRef, control.Child("templateRef"))...)
	before, after := old.Spec.ControlPlane.MachineInfrastructure.TemplateRef, now.Spec.ControlPlane.MachineInfrastructure.TemplateRef
	if before.IsDefined() && after.IsDefined() {
		errs = append(errs, validateSameKind(before, after, control.Child("machineInfrastructure", "templateRef"))...)
	}
	for _, c := range topology.WorkerClasses(now) {
		if was := topology.FindWorkerClass(old, c.Role, c.Worker); was != nil {
			errs = append(errs, validateSameKind(was.Infrastructure, c.Infrastructure, c.Path(spec).Child("infrastructure", "templateRef"))...)
		}
	}
	return errs
}

func validateSameKind(old, now clusterv1.ClusterClassTemplateReference, path *field.Path) field.ErrorList {
	before, after := old.GroupVersionKind().GroupKind(), now.GroupVersionKind().GroupKind()
	if before == after {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("cannot be changed from %s to %s, because existing objects of Clusters cannot change their kind", before, after))}
}

// validateUse checks, on update of a ClusterClass, that no part that a Cluster uses is removed. It is part of
// [validateClass]; package manager/webhook reads the Clusters into the request.
func validateUse(r classRequest, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	users := slices.Clone(r.Users)
	slices.SortFunc(users, func(a, b clusterv1.Cluster) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	said := map[string]bool{}
	for i := range users {
		for _, err := range validateUser(r, &users[i], spec) {
			if !said[err.Error()] && len(errs) < maxErrors {
				errs = append(errs, err)
			}
			said[err.Error()] = true
		}
	}
	return errs
}

// maxErrors is the maximum number of reported problems with Clusters that use the class.
const maxErrors = 20

// validateUser validates a class against one Cluster that uses it.
func validateUser(r classRequest, user *clusterv1.Cluster, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	name := "Cluster " + user.Namespace + "/" + user.Name
	for _, w := range topology.Workers(user.Spec.Topology) {
		path := spec.Child("workers", "machineDeployments")
		if w.Role == topology.Pool {
			path = spec.Child("workers", "machinePools")
		}
		path = path.Key(w.Class)
		now, was := topology.FindWorkerClass(r.New, w.Role, w.Class), topology.FindWorkerClass(r.Old, w.Role, w.Class)
		switch {
		case now == nil && was != nil:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("cannot be removed: %s uses it for %s", name, w.Key)))
		case now == nil:
		case isEnabledWithoutCheck(w, *now) && was != nil && was.HealthCheck.IsDefined():
			errs = append(errs, field.Forbidden(path.Child("healthCheck"),
				fmt.Sprintf("cannot be removed: %s enables it for %s and does not define its own", name, w.Key)))
		case isSetDespiteAutoscaler(w, *now) && !(was != nil && isAutoscaled(was.Metadata.Annotations)):
			errs = append(errs, field.Forbidden(path.Child("metadata", "annotations"),
				fmt.Sprintf("cannot have the autoscaler's limits: %s sets replicas of %s; remove them there first", name, w.Key)))
		}
	}
	before, now := r.Old.Spec.ControlPlane.HealthCheck, r.New.Spec.ControlPlane.HealthCheck
	if own := user.Spec.Topology.ControlPlane.HealthCheck; ptr.Deref(own.Enabled, false) && !own.IsDefined() && before.IsDefined() && !now.IsDefined() {
		errs = append(errs, field.Forbidden(spec.Child("controlPlane", "healthCheck"),
			fmt.Sprintf("cannot be removed: %s enables it and does not define its own", name)))
	}
	if versions := r.New.Spec.KubernetesVersions; len(versions) > 0 && !slices.Contains(versions, user.Spec.Topology.Version) {
		errs = append(errs, field.Invalid(spec.Child("kubernetesVersions"), versions, fmt.Sprintf("must contain %s, the version of %s", user.Spec.Topology.Version, name)))
	}
	return append(errs, validateSetVariables(r, user, spec.Child("variables"))...)
}

// validateSetVariables checks that no variable is removed that a Cluster sets, because the class would be invalid for
// that Cluster. Variables that an extension also defines may be removed.
func validateSetVariables(r classRequest, user *clusterv1.Cluster, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	set := variablesOf(user)
	for _, was := range r.Old.Spec.Variables {
		stays := func(v clusterv1.ClusterClassVariable) bool { return v.Name == was.Name }
		if !set[was.Name] || slices.ContainsFunc(r.New.Spec.Variables, stays) || isDefinedElsewhere(r.Old, was.Name) {
			continue
		}
		first := "remove it there first"
		if was.Schema.OpenAPIV3Schema.Default != nil || was.Required != nil && *was.Required {
			first = "make it optional without a default in the class first, then remove it from the Cluster"
		}
		errs = append(errs, field.Forbidden(path.Key(was.Name), fmt.Sprintf("cannot be removed: Cluster %s/%s sets it; %s", user.Namespace, user.Name, first)))
	}
	return errs
}

// variablesOf returns the names of the variables that a Cluster sets, including overrides.
func variablesOf(cluster *clusterv1.Cluster) map[string]bool {
	lists := [][]clusterv1.ClusterVariable{cluster.Spec.Topology.Variables, cluster.Spec.Topology.ControlPlane.Variables.Overrides}
	for _, w := range topology.Workers(cluster.Spec.Topology) {
		lists = append(lists, w.Overrides)
	}
	names := map[string]bool{}
	for _, list := range lists {
		for _, v := range list {
			names[v.Name] = true
		}
	}
	return names
}

// isDefinedElsewhere reports whether an extension defines a variable.
func isDefinedElsewhere(class *clusterv1.ClusterClass, name string) bool {
	return slices.ContainsFunc(class.Status.Variables, func(v clusterv1.ClusterClassStatusVariable) bool {
		return v.Name == name && slices.ContainsFunc(v.Definitions, func(d clusterv1.ClusterClassStatusVariableDefinition) bool {
			return d.From != clusterv1.VariableDefinitionFromInline
		})
	})
}

// isAutoscaled reports whether an autoscaler sets the replicas.
func isAutoscaled(annotations map[string]string) bool {
	_, lowest := annotations[clusterv1.AutoscalerMinSizeAnnotation]
	_, highest := annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	return lowest || highest
}
