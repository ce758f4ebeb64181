package admission

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// defaultNodeDeletionTimeoutSeconds is how long a deleted Machine waits for its Node to go.
const defaultNodeDeletionTimeoutSeconds = 10

// defaultMachine sets the cluster label, the v of the version and the node deletion timeout.
func defaultMachine(in *clusterv1.Machine) (runtime.Object, bool) {
	out := in.DeepCopy()
	changed := defaultClusterLabel(&out.Labels, out.Spec.ClusterName)
	if defaultMachineSpec(&out.Spec) {
		changed = true
	}
	if !changed {
		return in, false
	}
	return out, true
}

// defaultClusterLabel sets the label that tells the cluster of an object, and says whether it changed.
func defaultClusterLabel(labels *map[string]string, cluster string) bool {
	if cluster == "" || (*labels)[clusterv1.ClusterNameLabel] == cluster {
		return false
	}
	if *labels == nil {
		*labels = map[string]string{}
	}
	(*labels)[clusterv1.ClusterNameLabel] = cluster
	return true
}

// defaultMachineSpec sets the defaults of a Machine, or of the Machines of a pool, and says whether it changed.
func defaultMachineSpec(spec *clusterv1.MachineSpec) bool {
	changed := false
	if version := withV(spec.Version); version != spec.Version {
		spec.Version = version
		changed = true
	}
	if spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(defaultNodeDeletionTimeoutSeconds))
		changed = true
	}
	return changed
}

func validateMachine(r Request, machine *clusterv1.Machine) Verdict {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if old, isUpdate := r.Old.(*clusterv1.Machine); isUpdate {
		errs = append(errs, validateSame(old.Spec.ClusterName, machine.Spec.ClusterName, spec.Child("clusterName"))...)
	}
	// A Machine of a pool has no bootstrap data: the pool's infrastructure bootstraps it.
	if _, ofPool := machine.Labels[clusterv1.MachinePoolNameLabel]; !ofPool {
		errs = append(errs, validateBootstrap(machine.Spec.Bootstrap, spec.Child("bootstrap"))...)
	} else {
		errs = append(errs, validateDataSecret(machine.Spec.Bootstrap, spec.Child("bootstrap"))...)
	}
	_, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]
	errs = append(errs, validateVersion(machine.Spec.Version, spec.Child("version"))...)
	errs = append(errs, validateTaints(machine.Spec.Taints, taintRules{controlPlane, r.Gates}, spec.Child("taints"))...)
	return Verdict{Errors: errs}
}

// validateBootstrap checks that bootstrap data comes from somewhere.
func validateBootstrap(bootstrap clusterv1.Bootstrap, path *field.Path) field.ErrorList {
	if bootstrap.ConfigRef.IsDefined() || bootstrap.DataSecretName != nil {
		return validateDataSecret(bootstrap, path)
	}
	return field.ErrorList{field.Required(path, "one of configRef and dataSecretName must be set")}
}

// kubeconfigSuffix ends the names of the Secrets with the administrators' kubeconfigs of clusters.
const kubeconfigSuffix = "-kubeconfig"

// validateDataSecret refuses the administrator's kubeconfig of a cluster as bootstrap data: it has the same key, and who creates a
// Machine need not be allowed to read Secrets.
func validateDataSecret(bootstrap clusterv1.Bootstrap, path *field.Path) field.ErrorList {
	if name := bootstrap.DataSecretName; name != nil && strings.HasSuffix(*name, kubeconfigSuffix) {
		return field.ErrorList{field.Invalid(path.Child("dataSecretName"), *name,
			"a Secret of this name holds the credentials of a cluster, and no bootstrap data: name another")}
	}
	return nil
}
