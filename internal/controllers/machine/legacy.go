package machine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// legacy returns the rows of the conditions in status.deprecated.v1beta1, which [report] computes from the other
// conditions for clients of Cluster API's v1beta1.
func legacy() []condition.V1Beta1Row {
	return []condition.V1Beta1Row{
		{Type: clusterv1.ReadyV1Beta1Condition, From: clusterv1.MachineReadyCondition},
		bootstrapConfig.Legacy(clusterv1.BootstrapReadyV1Beta1Condition, clusterv1.WaitingForDataSecretFallbackV1Beta1Reason),
		infrastructure.Legacy(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason),
		{Type: clusterv1.MachineNodeHealthyV1Beta1Condition, From: clusterv1.MachineNodeHealthyCondition,
			Reason: nodeReason, Severity: nodeSeverity},
		{Type: clusterv1.MachineHealthCheckSucceededV1Beta1Condition, From: clusterv1.MachineHealthCheckSucceededCondition,
			Reason: healthReason, Severity: legacyWarning},
		{Type: clusterv1.MachineOwnerRemediatedV1Beta1Condition, From: clusterv1.MachineOwnerRemediatedCondition,
			Severity: legacyWarning},
		stageRow(clusterv1.PreDrainDeleteHookSucceededV1Beta1Condition, nil),
		stageRow(clusterv1.DrainingSucceededV1Beta1Condition, drainSeverity),
		stageRow(clusterv1.VolumeDetachSucceededV1Beta1Condition, nil),
		stageRow(clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition, nil),
	}
}

// stageRow projects a condition that legacySet adds for a stage of the deletion, which exists only in v1beta1.
func stageRow(t clusterv1.ConditionType, severity func(string) clusterv1.ConditionSeverity) condition.V1Beta1Row {
	return condition.V1Beta1Row{Type: t, From: string(t), Severity: severity}
}

// legacySet returns the source of the v1beta1 conditions: the conditions of this controller, of health checks and
// of owners, and the stages of the deletion. deprecated (status.go) calls it for [report].
func (j conditionInput) legacySet(own condition.Set) condition.Set {
	set := slices.Clone(own)
	for _, t := range []string{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition} {
		if c := condition.Set(j.Machine.Status.Conditions).Get(t); c != nil {
			set = append(set, *c)
		}
	}
	return append(set, j.stages()...)
}

// stages returns a condition for each stage of the deletion that was entered, with its completion.
func (j conditionInput) stages() condition.Set {
	if !deleting(j.snapshot) {
		return nil
	}
	now := j.plan.Stage.Order
	began := j.deletion
	if began == nil {
		began = &clusterv1.MachineDeletionStatus{}
	}
	var set condition.Set
	add := func(t clusterv1.ConditionType, v condition.Result) {
		set = append(set, metav1.Condition{Type: string(t), Status: v.Status, Reason: v.Reason, Message: v.Message,
			LastTransitionTime: metav1.NewTime(j.Now.Truncate(time.Second))})
	}
	stage := func(t clusterv1.ConditionType, of int, since metav1.Time, reason string) {
		switch {
		case now == of:
			add(t, condition.False(reason, j.plan.Stage.Message))
		case now > of && !since.IsZero():
			add(t, condition.True("Succeeded"))
		}
	}
	stage(clusterv1.PreDrainDeleteHookSucceededV1Beta1Condition, preDrainHooks, began.WaitForPreDrainHookStartTime,
		clusterv1.WaitingExternalHookV1Beta1Reason)
	if v, ok := j.drainingSucceeded(); ok {
		add(clusterv1.DrainingSucceededV1Beta1Condition, v)
	}
	stage(clusterv1.VolumeDetachSucceededV1Beta1Condition, detaching, began.WaitForNodeVolumeDetachStartTime,
		clusterv1.WaitingForVolumeDetachV1Beta1Reason)
	stage(clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition, preTerminateHooks,
		began.WaitForPreTerminateHookStartTime, clusterv1.WaitingExternalHookV1Beta1Reason)
	return set
}

// drainingSucceeded returns the state of the drain, and whether there is one.
func (j conditionInput) drainingSucceeded() (condition.Result, bool) {
	if !deleting(j.snapshot) || j.deletion == nil || j.deletion.NodeDrainStartTime.IsZero() {
		return condition.Result{}, false
	}
	name := j.nodeRef.Name
	if j.plan.Stage.Order <= draining {
		_, cordon := j.out.Failed.(cordon)
		if cordon || j.evicted != nil && j.evicted.Failures() {
			return condition.False(clusterv1.DrainingFailedV1Beta1Reason,
				"Node "+name+" cannot be drained now; retrying"), true
		}
		return condition.False(clusterv1.DrainingV1Beta1Reason, "Draining Node "+name), true
	}
	stage := j.before(clusterv1.MachineDeletingCondition)
	for _, c := range j.Machine.GetV1Beta1Conditions() {
		switch {
		case c.Type != clusterv1.DrainingSucceededV1Beta1Condition:
		case c.Status == corev1.ConditionTrue:
			return condition.True("Succeeded"), true
		case c.Reason == clusterv1.DrainingFailedV1Beta1Reason && stage != nil && stage.Reason != clusterv1.MachineDeletingDrainingNodeReason: // the timeout passed earlier
			return condition.False(c.Reason, c.Message), true
		}
	}
	if left, limited := drainLeft(j.snapshot); limited && left <= 0 {
		limit := "spec.deletion.nodeDrainTimeoutSeconds"
		if j.Infra.Removed {
			limit = "10s, and its machine was removed"
		}
		return condition.False(clusterv1.DrainingFailedV1Beta1Reason, "Node "+name+" was not drained within "+limit), true
	}
	return condition.True("Succeeded"), true
}

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

// nodeReason returns the v1beta1 reason of NodeHealthy.
func nodeReason(r string) string {
	switch r {
	case clusterv1.MachineNodeNotHealthyReason:
		return clusterv1.NodeConditionsFailedV1Beta1Reason
	case clusterv1.MachineNodeDeletedReason:
		return clusterv1.NodeNotFoundV1Beta1Reason
	case clusterv1.MachineNodeDoesNotExistReason:
		return clusterv1.NodeProvisioningV1Beta1Reason
	case clusterv1.MachineNodeInspectionFailedReason, ownership.ReasonNodesAmbiguous, reasonProviderIDDiffers:
		return clusterv1.NodeInspectionFailedV1Beta1Reason
	}
	return r
}

// nodeSeverity returns the severity of a False NodeHealthy condition.
func nodeSeverity(reason string) clusterv1.ConditionSeverity {
	switch reason {
	case clusterv1.MachineNodeDeletedReason:
		return clusterv1.ConditionSeverityError
	case clusterv1.MachineNodeNotHealthyReason:
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}
