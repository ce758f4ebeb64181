// Package legacy translates the reasons of Machine conditions to v1beta1 and determines their severity. The
// projection itself is in the Machine controller. Start with [NodeReason].
package machine

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// DrainSeverity returns the severity of a False DrainingSucceeded condition.
func DrainSeverity(reason string) clusterv1.ConditionSeverity {
	if reason == clusterv1.DrainingFailedV1Beta1Reason {
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}

// LegacyWarning returns the severity Warning for every reason.
func LegacyWarning(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning }

// HealthReason returns the v1beta1 reason of HealthCheckSucceeded.
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

// NodeReason returns the v1beta1 reason of NodeHealthy.
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

// NodeSeverity returns the severity of a False NodeHealthy condition.
func NodeSeverity(reason string) clusterv1.ConditionSeverity {
	switch reason {
	case clusterv1.MachineNodeDeletedReason:
		return clusterv1.ConditionSeverityError
	case clusterv1.MachineNodeNotHealthyReason:
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}
