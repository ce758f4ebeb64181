package controlplane

import (
	"slices"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// v1beta1 maps conditions to the conditions of v1beta1, which report writes to status.deprecated.v1beta1 until Cluster
// API removes it. Types, reasons and severities are the API of v1beta1 and must stay.
var v1beta1 = []condition.V1Beta1Row{
	{Type: controlplanev1.AvailableV1Beta1Condition, From: controlplanev1.KubeadmControlPlaneInitializedCondition, Sticky: true,
		Reason: func(string) string { return controlplanev1.WaitingForKubeadmInitV1Beta1Reason }},
	{Type: controlplanev1.CertificatesAvailableV1Beta1Condition, From: controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, Severity: warning},
	{Type: controlplanev1.ControlPlaneComponentsHealthyV1Beta1Condition, From: controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, Severity: failure},
	{Type: controlplanev1.EtcdClusterHealthyV1Beta1Condition, From: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Severity: failure},
	{Type: controlplanev1.MachinesReadyV1Beta1Condition, From: controlplanev1.KubeadmControlPlaneMachinesReadyCondition},
	{Type: controlplanev1.MachinesSpecUpToDateV1Beta1Condition, From: controlplanev1.KubeadmControlPlaneRollingOutCondition, FromPolarity: condition.Negative, Severity: warning,
		Reason: func(string) string { return controlplanev1.RollingUpdateInProgressV1Beta1Reason }},
	{Type: controlplanev1.ResizedV1Beta1Condition, From: resized},
	{Type: clusterv1.ReadyV1Beta1Condition, From: clusterv1.ReadyCondition},
}

func warning(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning }
func failure(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityError }

// resized only exists to be mapped to v1beta1.
const resized = "Resized"

var v1beta1Only = condition.Table[conditionInput]{{Type: resized, Compute: func(j conditionInput) condition.Result { return j.machines.Resized(j.desiredReplicas()) }}}

// legacyStatus returns the v1beta1 status, whose counters are based on the Nodes of the Machines. The set contains the
// conditions of the control plane. report calls it.
func legacyStatus(j conditionInput, set condition.Set) *controlplanev1.KubeadmControlPlaneV1Beta1DeprecatedStatus {
	more := append(slices.Clone(set), v1beta1Only.Evaluate(j, reconciler.EvaluateOptionsFor(j.ControlPlane, j.Now))...)
	ready := condition.Table[conditionInput]{{Type: clusterv1.ReadyCondition, Summarize: func(_ conditionInput, seen condition.Set) condition.Result {
		return condition.Summarize(seen, condition.Reasons{Info: "Ready", Issue: "NotReady", Unknown: "ReadyUnknown"},
			condition.Part{Type: resized}, condition.Part{Type: controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition},
			condition.Part{Type: controlplanev1.KubeadmControlPlaneInitializedCondition},
			condition.Part{Type: controlplanev1.KubeadmControlPlaneMachinesReadyCondition})
	}}}
	more = append(more, ready.Evaluate(j, condition.EvaluateOptions{Generation: j.ControlPlane.Generation, Now: j.Now, Old: more})...)
	status := &controlplanev1.KubeadmControlPlaneV1Beta1DeprecatedStatus{Conditions: condition.Project(v1beta1, more, j.ControlPlane.GetV1Beta1Conditions())}
	status.ReadyReplicas, _ = j.machines.CountNodes()
	status.UnavailableReplicas = int32(max(0, max(j.desiredReplicas(), len(j.machines))-int(status.ReadyReplicas)))
	status.UpdatedReplicas = j.machines.Count().UpToDate
	return status
}
