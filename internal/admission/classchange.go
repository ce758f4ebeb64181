package admission

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// checkCompatible validates a change from one class to another, or a change of the class itself: templates must have
// the same kind, because existing objects of Clusters cannot change their kind.
func checkCompatible(old, now *clusterv1.ClusterClass) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateSameKind(old.Spec.Infrastructure.TemplateRef, now.Spec.Infrastructure.TemplateRef, spec.Child("infrastructure", "templateRef"))
	control := spec.Child("controlPlane")
	errs = append(errs, validateSameKind(old.Spec.ControlPlane.TemplateRef, now.Spec.ControlPlane.TemplateRef, control.Child("templateRef"))...)
	before, after := old.Spec.ControlPlane.MachineInfrastructure.TemplateRef, now.Spec.ControlPlane.MachineInfrastructure.TemplateRef
	if before.IsDefined() && after.IsDefined() {
		errs = append(errs, validateSameKind(before, after, control.Child("machineInfrastructure", "templateRef"))...)
	}
	workers := spec.Child("workers")
	for i, c := range now.Spec.Workers.MachineDeployments {
		if was := deploymentClass(old, c.Class); was != nil {
			errs = append(errs, validateSameKind(was.Infrastructure.TemplateRef, c.Infrastructure.TemplateRef,
				workers.Child("machineDeployments").Index(i).Child("infrastructure", "templateRef"))...)
		}
	}
	for i, c := range now.Spec.Workers.MachinePools {
		if was := poolClass(old, c.Class); was != nil {
			errs = append(errs, validateSameKind(was.Infrastructure.TemplateRef, c.Infrastructure.TemplateRef,
				workers.Child("machinePools").Index(i).Child("infrastructure", "templateRef"))...)
		}
	}
	return errs
}

func validateSameKind(old, now clusterv1.ClusterClassTemplateReference, path *field.Path) field.ErrorList {
	before, after := old.GroupVersionKind().GroupKind(), now.GroupVersionKind().GroupKind()
	if before == after {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, fmt.Sprintf("cannot be changed from %s to %s: what exists of Clusters stays of its kind", before, after))}
}

func deploymentClass(class *clusterv1.ClusterClass, name string) *clusterv1.MachineDeploymentClass {
	i := slices.IndexFunc(class.Spec.Workers.MachineDeployments, func(c clusterv1.MachineDeploymentClass) bool { return c.Class == name })
	if i < 0 {
		return nil
	}
	return &class.Spec.Workers.MachineDeployments[i]
}

func poolClass(class *clusterv1.ClusterClass, name string) *clusterv1.MachinePoolClass {
	i := slices.IndexFunc(class.Spec.Workers.MachinePools, func(c clusterv1.MachinePoolClass) bool { return c.Class == name })
	if i < 0 {
		return nil
	}
	return &class.Spec.Workers.MachinePools[i]
}

// validateUse checks that no part of a class that a Cluster uses is removed.
func validateUse(r classRequest, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	users := slices.Clone(r.Users)
	slices.SortFunc(users, func(a, b clusterv1.Cluster) int { return compareTexts(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
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

func compareTexts(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// validateUser validates a class against one Cluster that uses it.
func validateUser(r classRequest, user *clusterv1.Cluster, spec *field.Path) field.ErrorList {
	var errs field.ErrorList
	name, topology := "Cluster "+user.Namespace+"/"+user.Name, user.Spec.Topology
	workers := spec.Child("workers")
	for _, d := range topology.Workers.MachineDeployments {
		path := workers.Child("machineDeployments").Key(d.Class)
		now, was := deploymentClass(r.New, d.Class), deploymentClass(r.Old, d.Class)
		switch {
		case now == nil && was != nil:
			errs = append(errs, field.Forbidden(path, fmt.Sprintf("cannot be removed: %s uses it for MachineDeployment %s", name, d.Name)))
		case now == nil:
		case ptr.Deref(d.HealthCheck.Enabled, false) && !d.HealthCheck.IsDefined() && !now.HealthCheck.IsDefined() && was != nil && was.HealthCheck.IsDefined():
			errs = append(errs, field.Forbidden(path.Child("healthCheck"),
				fmt.Sprintf("cannot be removed: %s has it turned on for MachineDeployment %s and defines none of its own", name, d.Name)))
		case d.Replicas != nil && isAutoscaled(now.Metadata.Annotations) && !(was != nil && isAutoscaled(was.Metadata.Annotations)):
			errs = append(errs, field.Forbidden(path.Child("metadata", "annotations"),
				fmt.Sprintf("cannot have the autoscaler's limits: %s sets replicas of MachineDeployment %s; remove them there first", name, d.Name)))
		}
	}
	for _, p := range topology.Workers.MachinePools {
		if poolClass(r.New, p.Class) == nil && poolClass(r.Old, p.Class) != nil {
			errs = append(errs, field.Forbidden(workers.Child("machinePools").Key(p.Class),
				fmt.Sprintf("cannot be removed: %s uses it for MachinePool %s", name, p.Name)))
		}
	}
	before, now := r.Old.Spec.ControlPlane.HealthCheck, r.New.Spec.ControlPlane.HealthCheck
	if own := topology.ControlPlane.HealthCheck; ptr.Deref(own.Enabled, false) && !own.IsDefined() && before.IsDefined() && !now.IsDefined() {
		errs = append(errs, field.Forbidden(spec.Child("controlPlane", "healthCheck"),
			fmt.Sprintf("cannot be removed: %s has it turned on and defines none of its own", name)))
	}
	if versions := r.New.Spec.KubernetesVersions; len(versions) > 0 && !slices.Contains(versions, topology.Version) {
		errs = append(errs, field.Invalid(spec.Child("kubernetesVersions"), versions, fmt.Sprintf("must contain %s: %s has it", topology.Version, name)))
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
			first = "make it optional and without a default here, then remove it there, first"
		}
		errs = append(errs, field.Forbidden(path.Key(was.Name), fmt.Sprintf("cannot be removed: Cluster %s/%s sets it; %s", user.Namespace, user.Name, first)))
	}
	return errs
}

// variablesOf returns the names of the variables that a Cluster sets, including overrides.
func variablesOf(cluster *clusterv1.Cluster) map[string]bool {
	topology := cluster.Spec.Topology
	lists := [][]clusterv1.ClusterVariable{topology.Variables, topology.ControlPlane.Variables.Overrides}
	for _, d := range topology.Workers.MachineDeployments {
		lists = append(lists, d.Variables.Overrides)
	}
	for _, p := range topology.Workers.MachinePools {
		lists = append(lists, p.Variables.Overrides)
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
