// Package legacy translates the reasons of Machine conditions to v1beta1 and determines their severity. The
// projection itself is in the Machine controller. Start with [nodeReason].
package machine

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// drainSeverity returns the severity of a False DrainingSucceeded condition.
func drainSeverity(reason string) clusterv1.ConditionSeverity {
	if reason == clusterv1.DrainingFailedV1Beta1Reason {
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}

// legacyWarning returns the severity Warning for every reason.
func legacyWarning(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning }

// healthReason returns the v1beta1 reason of HealthCheckSucceeded.
func healthReason(r string) string {
	switch r {
	case clusterv1.MachineHealthCheckUnhealthyNodeReason:
		return clusterv1.UnhealthyNodeConditionV1Beta1Reason
	case clusterv1.MachineHealthCheckUnhealthyMachineReason:
		return clusterv1.UnhealthyMachineConditionV1Beta1Reason
	case clusterv1.MachineHealthCheckNodeStartupTimeoutReason:
		return clusterv1.NodeStartupTimeoutV1Beta1Reason
	case clusterv1.MachineHealthCheckNodeDeletedReason:
		return clusterv1.NodeNotFoundV1Beta1Reason
	case clusterv1.MachineHealthCheckHasRemediateAnnotationReason:
		return clusterv1.HasRemediateMachineAnnotationV1Beta1Reason
	}
	return r
}

// nodeReason returns the v1beta1 reason of nodeHealthy.
func nodeReason(r string) string {
	switch r {
	case clusterv1.MachineNodeNotHealthyReason:
		return clusterv1.NodeConditionsFailedV1Beta1Reason
	case clusterv1.MachineNodeDeletedReason:
		return clusterv1.NodeNotFoundV1Beta1Reason
	case clusterv1.MachineNodeDoesNotExistReason:
		return clusterv1.NodeProvisioningV1Beta1Reason
	case clusterv1.MachineNodeInspectionFailedReason, ownership.ReasonNodesAmbiguous, "ProviderIDDiffers":
		return clusterv1.NodeInspectionFailedV1Beta1Reason
	}
	return r
}

// nodeSeverity returns the severity of a False nodeHealthy condition.
func nodeSeverity(reason string) clusterv1.ConditionSeverity {
	switch reason {
	case clusterv1.MachineNodeDeletedReason:
		return clusterv1.ConditionSeverityError
	case clusterv1.MachineNodeNotHealthyReason:
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}
