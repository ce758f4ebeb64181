package admission

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultNodeDeletionTimeoutSeconds is how long a deleted Machine waits for its Node to be deleted. It is Cluster API's
// default.
const defaultNodeDeletionTimeoutSeconds = 10

// defaultClusterLabel sets the cluster name label. [Default] calls it for every kind that belongs to one Cluster by its
// spec.
func defaultClusterLabel(o metav1.Object, cluster string) {
	if cluster == "" {
		return
	}
	labels := o.GetLabels()
	addLabels(&labels, map[string]string{clusterv1.ClusterNameLabel: cluster})
	o.SetLabels(labels)
}

// defaultMachineSpec sets the leading v of the version and the node deletion timeout of a Machine or a Machine
// template. [Default] calls it for Machines and for every kind with a template of Machines.
func defaultMachineSpec(spec *clusterv1.MachineSpec) {
	spec.Version = withV(spec.Version)
	if spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(defaultNodeDeletionTimeoutSeconds))
	}
}

// validateMachine validates a Machine for [Validate], on create and update.
func validateMachine(r Request, machine *clusterv1.Machine) Response {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if old, isUpdate := r.Old.(*clusterv1.Machine); isUpdate {
		errs = append(errs, validateSame(old.Spec.ClusterName, machine.Spec.ClusterName, spec.Child("clusterName"))...)
	}
	// A Machine of a MachinePool has no bootstrap data: the pool's infrastructure bootstraps it.
	if _, ofPool := machine.Labels[clusterv1.MachinePoolNameLabel]; !ofPool {
		errs = append(errs, validateBootstrap(machine.Spec.Bootstrap, spec.Child("bootstrap"))...)
	} else {
		errs = append(errs, validateDataSecret(machine.Spec.Bootstrap, spec.Child("bootstrap"))...)
	}
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
	errs = append(errs, validateVersion(machine.Spec.Version, spec.Child("version"))...)
	errs = append(errs, validateTaints(machine.Spec.Taints, taintRules{controlPlane, r.Gates}, spec.Child("taints"))...)
	return Response{Errors: errs}
}

// validateBootstrap checks that a source of bootstrap data is set.
func validateBootstrap(bootstrap clusterv1.Bootstrap, path *field.Path) field.ErrorList {
	if bootstrap.ConfigRef.IsDefined() || bootstrap.DataSecretName != nil {
		return validateDataSecret(bootstrap, path)
	}
	return field.ErrorList{field.Required(path, "one of configRef and dataSecretName must be set")}
}

// kubeconfigSuffix is the suffix of the Secrets with the admin kubeconfigs of clusters. Cluster API defines it; the
// Cluster controller and package workload use the same names.
const kubeconfigSuffix = "-kubeconfig"

// validateDataSecret rejects the admin kubeconfig Secret of a cluster as bootstrap data: it has the same key, and a
// user who can create Machines may not have permission to read Secrets.
func validateDataSecret(bootstrap clusterv1.Bootstrap, path *field.Path) field.ErrorList {
	if name := bootstrap.DataSecretName; name != nil && strings.HasSuffix(*name, kubeconfigSuffix) {
		return field.ErrorList{field.Invalid(path.Child("dataSecretName"), *name,
			"a Secret with this name contains the credentials of a cluster, not bootstrap data: use another name")}
	}
	return nil
}
