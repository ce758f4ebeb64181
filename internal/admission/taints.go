package admission

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// taintRules holds the parameters for the validation of taints. controlPlane means that the taints are for Machines of
// a control plane. The validation of each kind with taints fills it in.
type taintRules struct {
	controlPlane bool
	gates        Gates
}

// validateTaints rejects taints in the spec of a Machine, or in the template of Machines of another kind, if the
// feature gate is disabled, and reserved taints. [Validate] calls it for every kind with taints, including
// ClusterClasses and topologies.
func validateTaints(taints []clusterv1.MachineTaint, rules taintRules, path *field.Path) field.ErrorList {
	if len(taints) == 0 {
		return nil
	}
	if !rules.gates.MachineTaintPropagation {
		return field.ErrorList{field.Forbidden(path, "requires the feature gate MachineTaintPropagation")}
	}
	var errs field.ErrorList
	for i, taint := range taints {
		if owner := taintOwner(taint.Key, rules.controlPlane); owner != "" {
			errs = append(errs, field.Invalid(path.Index(i).Child("key"), taint.Key, "is reserved for "+owner))
		}
	}
	return errs
}

// taintOwner returns for which component or use taints with this key are reserved, or an empty string if users may set
// them. The reserved keys are those of Cluster API.
func taintOwner(key string, controlPlane bool) string {
	switch {
	case key == clusterv1.NodeUninitializedTaint.Key, key == clusterv1.NodeOutdatedRevisionTaint.Key:
		return "Cluster API"
	case key == "node.kubernetes.io/out-of-service":
		return "" // set by users when a node is lost
	case strings.HasPrefix(key, "node.kubernetes.io/"):
		return "Kubernetes"
	case strings.HasPrefix(key, "node.cloudprovider.kubernetes.io/"):
		return "cloud providers"
	case key == "node-role.kubernetes.io/master":
		return "control planes of old Kubernetes versions"
	case key == "node-role.kubernetes.io/control-plane" && !controlPlane:
		return "control plane machines"
	}
	return ""
}
