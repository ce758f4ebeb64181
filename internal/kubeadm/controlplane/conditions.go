package controlplane

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/addons"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	base "github.com/slipwayhq/slipway/internal/rollout"
)

// conditions of KubeadmControlPlanes, which report evaluates at the end of each reconciliation. Types, reasons and
// polarity are the API of Cluster API, except for AddonsUpToDate and Recovered, which are specific to Slipway. The
// reconciler adds Paused.
var conditions = condition.Table[conditionInput]{
	{Type: controlplanev1.KubeadmControlPlaneInitializedCondition, Compute: conditionInput.initialized},
	{Type: controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, Compute: conditionInput.certificatesAvailable},
	{Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Compute: func(j conditionInput) condition.Result { return j.health().EtcdCluster() }},
	{Type: controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, Compute: func(j conditionInput) condition.Result { return j.health().Components() }},
	{Type: controlplanev1.KubeadmControlPlaneAvailableCondition, Compute: func(j conditionInput) condition.Result { return j.health().Available() }},
	{Type: controlplanev1.KubeadmControlPlaneMachinesReadyCondition, Compute: func(j conditionInput) condition.Result { return j.machines.Ready() }},
	{Type: controlplanev1.KubeadmControlPlaneMachinesUpToDateCondition, Compute: func(j conditionInput) condition.Result { return j.machines.UpToDate(j.Now) }},
	{Type: controlplanev1.KubeadmControlPlaneRollingOutCondition, Polarity: condition.Negative, Compute: conditionInput.rollingOut},
	{Type: controlplanev1.KubeadmControlPlaneScalingUpCondition, Polarity: condition.Negative, Compute: conditionInput.scalingUp},
	{Type: controlplanev1.KubeadmControlPlaneScalingDownCondition, Polarity: condition.Negative, Compute: conditionInput.scalingDown},
	{Type: controlplanev1.KubeadmControlPlaneRemediatingCondition, Polarity: condition.Negative, Compute: func(j conditionInput) condition.Result { return j.machines.RemediatingOrUnhealthy() }},
	{Type: addons.ConditionType, Compute: conditionInput.addons},
	{Type: hostedv1.AddonsAvailableCondition, Compute: conditionInput.addonsAvailable},
	{Type: hostedv1.RecoveredCondition, Compute: func(j conditionInput) condition.Result { return j.recoveredCondition() }},
	{Type: controlplanev1.KubeadmControlPlaneDeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deletion},
}

// Reasons of the condition Deleting and of its waits.
const (
	reasonWorkers  = controlplanev1.KubeadmControlPlaneDeletingWaitingForWorkersDeletionReason
	reasonMachines = controlplanev1.KubeadmControlPlaneDeletingWaitingForMachineDeletionReason
)

// conditionInput is a snapshot with its plan and the outcome.
type conditionInput struct {
	snapshot
	// machines are the Machines with their conditions after this reconciliation.
	machines machines.List
	plan     reconciler.Plan
	out      reconciler.Outcome
}

func (j conditionInput) isDeleting() bool { return !j.ControlPlane.DeletionTimestamp.IsZero() }

// health returns the input of the conditions about the health of the control plane.
func (j conditionInput) health() workload.ControlPlaneHealth {
	return workload.ControlPlaneHealth{
		Now: j.Now, Machines: j.machines, Managed: j.managesEtcd(), Etcd: j.Etcd.Members, EtcdProblem: j.etcdProblem(),
		Stale: j.Workload.Problem != "" && !j.isDown(), Certificates: j.certificatesAvailable(), Initialized: j.isInitialized(), Deleting: j.isDeleting(), Down: j.isDown(),
		Loss: j.Recovery.Loss.Text,
	}
}

func (j conditionInput) initialized() condition.Result {
	if j.isInitialized() {
		return condition.True(controlplanev1.KubeadmControlPlaneInitializedReason)
	}
	return condition.False(controlplanev1.KubeadmControlPlaneNotInitializedReason, "Control plane not yet initialized")
}

func (j conditionInput) certificatesAvailable() condition.Result {
	if j.Cluster == nil {
		return condition.Unknown(controlplanev1.KubeadmControlPlaneCertificatesInternalErrorReason, "Waiting for the Cluster to own this control plane")
	}
	state := j.Certificates
	switch {
	case len(state.Problems) > 0:
		return condition.False(controlplanev1.KubeadmControlPlaneCertificatesNotAvailableReason, state.Problems[0].Text)
	case len(state.Create) > 0 && j.out.Err != nil:
		return condition.False(controlplanev1.KubeadmControlPlaneCertificatesNotAvailableReason, "Secrets are being created")
	case len(state.Create) > 0 && !slices.ContainsFunc(j.plan.Actions, isSecretCreation):
		return condition.False(controlplanev1.KubeadmControlPlaneCertificatesNotAvailableReason, "Secrets are missing, and are not created while the control plane waits")
	}
	return condition.True(controlplanev1.KubeadmControlPlaneCertificatesAvailableReason)
}

func (j conditionInput) rollingOut() condition.Result {
	var members []condition.AggregateMember
	for _, m := range j.Members {
		if v := base.ConditionOfChanges(m.Machine, rolloutMessages(m.Reasons), nil); v.Status == metav1.ConditionFalse {
			members = append(members, condition.AggregateMember{Kind: machineKind, Name: m.Name, Conditions: condition.Set{{Type: "Outdated", Status: v.Status, Message: v.Message}}})
		}
	}
	if len(members) == 0 {
		return condition.False(controlplanev1.KubeadmControlPlaneNotRollingOutReason, expiryRolloutObstacle(j.ControlPlane, secrets.ExpiresAt(j.Secrets[secrets.CA]), j.Now))
	}
	v := condition.Aggregate(members, condition.Part{Type: "Outdated"}, condition.Reasons{})
	return condition.TrueBecause(controlplanev1.KubeadmControlPlaneRollingOutReason,
		fmt.Sprintf("Rolling out %d not up-to-date replicas\n%s", len(members), v.Message)+j.blockedText())
}

// blockers returns the reasons that prevent a change of the number of Machines.
func (j conditionInput) blockers() []string {
	var out []string
	for _, w := range j.plan.Waits {
		if slices.Contains([]string{waitForPreflight, waitForName, waitForMachines, waitUnknown}, w.Reason) {
			out = append(out, w.Message)
		}
	}
	if a, failed := j.out.Failed.(createMachine); failed {
		out = append(out, machines.FailureText("Machine could not be created", j.out, a.Name))
	}
	return out
}

func (j conditionInput) blockedText() string {
	text := ""
	for _, blocker := range j.blockers() {
		text += "\n* " + blocker
	}
	return text
}

// desiredReplicas returns the desired number of Machines, which is zero for a control plane that is being deleted.
func (j conditionInput) desiredReplicas() int {
	if j.isDeleting() {
		return 0
	}
	return desired(j.snapshot)
}

func (j conditionInput) scalingUp() condition.Result {
	if len(j.machines) >= j.desiredReplicas() {
		return condition.False(controlplanev1.KubeadmControlPlaneNotScalingUpReason, "")
	}
	return j.machines.ScalingUp(j.desiredReplicas(), j.blockers())
}

func (j conditionInput) scalingDown() condition.Result {
	v := j.machines.ScalingDown(j.desiredReplicas(), j.Now)
	if v.Status == metav1.ConditionTrue {
		v.Message += j.blockedText()
	}
	return v
}

func (j conditionInput) deletion() condition.Result {
	if !j.isDeleting() {
		return condition.False(controlplanev1.KubeadmControlPlaneNotDeletingReason, "")
	}
	return condition.TrueBecause(j.plan.Stage.Reason, j.machines.WithLingering(j.plan.Stage.Message, j.Now))
}

// machineConditions are the conditions of a Machine that the control plane sets.
var machineConditions = append(condition.Table[machineConditionInput]{
	{Type: clusterv1.MachineUpToDateCondition, Compute: func(f machineConditionInput) condition.Result { return f.upToDate }},
	{Type: clusterv1.MachineOwnerRemediatedCondition, Compute: func(f machineConditionInput) condition.Result { return f.remediated }},
}, componentConditions()...)

// machineConditionInput is the input of the conditions of one Machine.
type machineConditionInput struct {
	workload.MachineState
	upToDate, remediated condition.Result
}

// componentConditions returns the conditions of package workload for the input of this package.
func componentConditions() condition.Table[machineConditionInput] {
	var out condition.Table[machineConditionInput]
	for _, row := range workload.MachineConditions() {
		out = append(out, condition.Row[machineConditionInput]{Type: row.Type, Compute: func(f machineConditionInput) condition.Result { return row.Compute(f.MachineState) }})
	}
	return out
}

// isDown reports whether the workload cluster has been unreadable for longer than the grace period.
func (s snapshot) isDown() bool {
	return s.isInitialized() && s.Workload.IsDown(s.Now, s.Connection, s.Settings.ConnectionGrace)
}

// machineConditionInput returns the condition input of a Machine from the latest state of the workload cluster.
func (s snapshot) machineConditionInput(m memberMachine, remediated condition.Result) machineConditionInput {
	down := s.isDown()
	return machineConditionInput{MachineState: workload.MachineState{
		OwnedMachine: m.OwnedMachine, State: s.Workload, Etcd: s.Etcd, Initialized: s.isInitialized(), Managed: s.managesEtcd(),
		Unchanged: !down && (s.Workload.Problem != "" || s.Workload.At.IsZero()), Down: down, Lost: s.Recovery.Loss.Why[m.Name],
		Expired: certificatesExpiredAt(m, s.Workload.Expiry, s.Now),
	}, upToDate: base.ConditionOfChanges(m.Machine, rolloutMessages(m.Reasons), nil), remediated: remediated}
}

// evaluate returns the conditions of a Machine that the control plane sets.
func (s snapshot) evaluate(m memberMachine, remediated condition.Result) []metav1.Condition {
	return machineConditions.Evaluate(s.machineConditionInput(m, remediated), reconciler.EvaluateOptionsFor(m.Machine, s.Now))
}

// observed returns a copy of a Machine with its conditions after this reconciliation. [snapshot.withMembers] evaluates
// the health of the Machine with it, because the conditions are not written yet.
func (s snapshot) observed(m memberMachine) *clusterv1.Machine {
	out := *m.Machine // shared with the cache except for the conditions
	out.Status.Conditions = nil
	set := s.evaluate(m, condition.Mirror(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition, condition.Absent()))
	for _, c := range m.Status.Conditions {
		if condition.Set(set).Get(c.Type) == nil {
			out.Status.Conditions = append(out.Status.Conditions, c)
		}
	}
	out.Status.Conditions = append(out.Status.Conditions, set...)
	return &out
}

// setConditions returns actions for the Machines whose conditions have to be updated. It is a step of [decideMachines].
func (s snapshot) setConditions() []reconciler.Action {
	var out []reconciler.Action
	for _, m := range s.Members {
		if m.Stale {
			continue
		}
		conditions := s.evaluate(m, s.remediated(m.OwnedMachine))
		if names := conditionsToWrite(m.Machine, conditions); len(names) > 0 {
			out = append(out, setConditions{Machine: m.Name, Types: names, Conditions: conditions})
		}
	}
	return out
}

// remediated returns the condition OwnerRemediated of a Machine: the result of this decision, or the existing
// condition of a Machine that is being deleted.
func (s snapshot) remediated(m machines.OwnedMachine) condition.Result {
	if v, decided := s.Remediation.Verdicts[m.Name]; decided {
		return v
	}
	if m.Deleted {
		return condition.Mirror(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition, condition.Absent())
	}
	return condition.Absent()
}

// isHealthy reports whether the control plane is stable and all components of all Machines are healthy. [decide] reads
// the workload cluster less often while it returns true.
func (s snapshot) isHealthy() bool {
	if len(s.Machines) != desired(s) || len(s.Created) > 0 || s.Workload.Problem != "" {
		return false
	}
	return !slices.ContainsFunc(s.Members, func(m memberMachine) bool { return m.Deleted || m.Unhealthy != "" })
}
