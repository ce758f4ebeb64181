package admission

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/topology"
)

// validateClusterClass validates a ClusterClass for [Validate], and on update also against the Clusters that use it.
func validateClusterClass(r Request, class *clusterv1.ClusterClass) Response {
	if !r.Gates.ClusterTopology {
		return warnOnCreation(r, warnTopology+"ClusterClass")
	}
	old, _ := r.Old.(*clusterv1.ClusterClass)
	request := classRequest{New: class, Old: old, Users: r.Related.Users, RuntimeSDK: r.Gates.RuntimeSDK}
	errs := validateClass(request)
	errs = append(errs, validateClassChecks(class)...)
	return Response{Errors: append(errs, validateClassTaints(class, r.Gates)...), Warnings: warnClass(request)}
}

// validateClassChecks validates the health checks of a class by the same rules as MachineHealthChecks.
func validateClassChecks(class *clusterv1.ClusterClass) field.ErrorList {
	spec := field.NewPath("spec")
	control := class.Spec.ControlPlane.HealthCheck
	errs := validateCheck(healthCheck{control.Checks.NodeStartupTimeoutSeconds,
		clusterv1.MachineHealthCheckRemediationTriggerIf(control.Remediation.TriggerIf)}, spec.Child("controlPlane", "healthCheck"))
	for _, c := range topology.WorkerClasses(class) {
		errs = append(errs, validateCheck(healthCheck{c.HealthCheck.Checks.NodeStartupTimeoutSeconds,
			clusterv1.MachineHealthCheckRemediationTriggerIf(c.HealthCheck.Remediation.TriggerIf)}, c.Path(spec).Child("healthCheck"))...)
	}
	return errs
}

// validateClassTaints validates the taints of a class by the same rules as taints of Machines.
func validateClassTaints(class *clusterv1.ClusterClass, gates Gates) field.ErrorList {
	spec := field.NewPath("spec")
	errs := validateTaints(class.Spec.ControlPlane.Taints, taintRules{controlPlane: true, gates: gates}, spec.Child("controlPlane", "taints"))
	for _, c := range topology.WorkerClasses(class) {
		errs = append(errs, validateTaints(c.Taints, taintRules{gates: gates}, c.Path(spec).Child("taints"))...)
	}
	return errs
}

// validateTopologyTaints validates the taints of a topology by the same rules as taints of Machines. It is part of the
// validation of a Cluster.
func validateTopologyTaints(t clusterv1.Topology, gates Gates, path *field.Path) field.ErrorList {
	errs := validateTaints(t.ControlPlane.Taints, taintRules{controlPlane: true, gates: gates}, path.Child("controlPlane", "taints"))
	for _, w := range topology.Workers(t) {
		errs = append(errs, validateTaints(w.Taints, taintRules{gates: gates}, w.Path(path).Child("taints"))...)
	}
	return errs
}

// deleteForMove is the annotation on objects that have been moved to another management cluster, together with their
// users. `clusterctl move` and `slipway move` set it, so it must not change.
const deleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"

// RefuseDeletion returns the reason why an object may not be deleted, or an empty string. The validating webhook and
// `slipway plan` call it for deletions. A rule for a further kind also needs the field deletes in package
// manager/webhook (kinds.go).
func RefuseDeletion(object runtime.Object, facts RelatedObjects) string {
	if class, ok := object.(*clusterv1.ClusterClass); ok {
		if _, moved := class.Annotations[deleteForMove]; moved {
			return ""
		}
		return refuseClassDeletion(class, facts.Users)
	}
	return ""
}

// healthCheck holds the fields of a health check that are validated.
type healthCheck struct {
	nodeStartupTimeoutSeconds *int32
	trigger                   clusterv1.MachineHealthCheckRemediationTriggerIf
}

// validateCheck validates a health check of a MachineHealthCheck or a class.
func validateCheck(check healthCheck, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := check.nodeStartupTimeoutSeconds; n != nil && *n != 0 && *n < minNodeStartupTimeoutSeconds {
		errs = append(errs, field.Invalid(path.Child("checks", "nodeStartupTimeoutSeconds"), *n,
			fmt.Sprintf("must be at least %d, or 0 to turn the check off", minNodeStartupTimeoutSeconds)))
	}
	return append(errs, validateTrigger(check.trigger, path.Child("remediation", "triggerIf"))...)
}
