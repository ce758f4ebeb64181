package cluster

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// legacyReady is a condition that only the v1beta1 projection uses. The condition is never written: withLegacyReady
// adds it to the input of condition.Project only.
const legacyReady = "ReadyV1Beta1"

// withLegacyReady adds the summary for the v1beta1 Ready condition. deprecated (status.go) calls it for [report].
func withLegacyReady(s snapshot, set condition.Set) condition.Set {
	v := condition.Summarize(set, condition.Reasons{Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason},
		condition.Part{Type: clusterv1.ClusterControlPlaneAvailableCondition}, condition.Part{Type: clusterv1.ClusterInfrastructureReadyCondition})
	table := condition.Table[condition.Result]{{Type: legacyReady, Compute: func(v condition.Result) condition.Result { return v }}}
	return append(append(condition.Set{}, set...), table.Evaluate(v, condition.EvaluateOptions{Now: s.Now})...)
}

// legacy returns the rows of the conditions in status.deprecated.v1beta1, which [report] computes from the other
// conditions for clients of Cluster API's v1beta1.
func legacy(s snapshot) []condition.V1Beta1Row {
	notInitialized := clusterv1.WaitingForControlPlaneProviderInitializedV1Beta1Reason
	if !s.Cluster.Spec.ControlPlaneRef.IsDefined() {
		notInitialized = clusterv1.MissingNodeRefV1Beta1Reason
	}
	return []condition.V1Beta1Row{
		{Type: clusterv1.ReadyV1Beta1Condition, From: legacyReady},
		infrastructure.Legacy(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason),
		controlPlane.Legacy(clusterv1.ControlPlaneReadyV1Beta1Condition, clusterv1.WaitingForControlPlaneFallbackV1Beta1Reason),
		{Type: clusterv1.ControlPlaneInitializedV1Beta1Condition, From: clusterv1.ClusterControlPlaneInitializedCondition, Sticky: true,
			Reason: func(reason string) string {
				if reason == clusterv1.ClusterControlPlaneNotInitializedReason {
					return notInitialized
				}
				return reason
			}},
	}
}
