// Package legacy is how the conditions of Machines are called in v1beta1.
//
// Does: translates reasons, and says how severe they are.
//
// Never: decides anything; the projection itself is the controller's.
//
// Read first: [NodeReason].
package legacy

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/ownership"
)

// DrainSeverity is the severity of DrainingSucceeded where it is false.
func DrainSeverity(reason string) clusterv1.ConditionSeverity {
	if reason == clusterv1.DrainingFailedV1Beta1Reason {
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}

// Warning is the severity of what is worth one.
func Warning(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning }

// HealthReason is the reason of HealthCheckSucceeded in v1beta1.
func HealthReason(r string) string {
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

// NodeReason is the reason of NodeHealthy in v1beta1.
func NodeReason(r string) string {
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

// NodeSeverity is the severity of NodeHealthy where it is false.
func NodeSeverity(reason string) clusterv1.ConditionSeverity {
	switch reason {
	case clusterv1.MachineNodeDeletedReason:
		return clusterv1.ConditionSeverityError
	case clusterv1.MachineNodeNotHealthyReason:
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}
