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

// conditions of KubeadmControlPlanes. The reconciler adds Paused.
var conditions = condition.Table[judged]{
	{Type: controlplanev1.KubeadmControlPlaneInitializedCondition, Of: judged.initialized},
	{Type: controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, Of: judged.certificatesAvailable},
	{Type: controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition, Of: func(j judged) condition.Verdict { return j.health().EtcdCluster() }},
	{Type: controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition, Of: func(j judged) condition.Verdict { return j.health().Components() }},
	{Type: controlplanev1.KubeadmControlPlaneAvailableCondition, Of: func(j judged) condition.Verdict { return j.health().Available() }},
	{Type: controlplanev1.KubeadmControlPlaneMachinesReadyCondition, Of: func(j judged) condition.Verdict { return j.machines.Ready() }},
	{Type: controlplanev1.KubeadmControlPlaneMachinesUpToDateCondition, Of: func(j judged) condition.Verdict { return j.machines.UpToDate(j.Now) }},
	{Type: controlplanev1.KubeadmControlPlaneRollingOutCondition, Polarity: condition.Negative, Of: judged.rollingOut},
	{Type: controlplanev1.KubeadmControlPlaneScalingUpCondition, Polarity: condition.Negative, Of: judged.scalingUp},
	{Type: controlplanev1.KubeadmControlPlaneScalingDownCondition, Polarity: condition.Negative, Of: judged.scalingDown},
	{Type: controlplanev1.KubeadmControlPlaneRemediatingCondition, Polarity: condition.Negative, Of: func(j judged) condition.Verdict { return j.machines.RemediatingOrUnhealthy() }},
	{Type: addons.ConditionType, Of: judged.addons},
	{Type: hostedv1.RecoveredCondition, Of: func(j judged) condition.Verdict { return j.recovering(j.plan).Verdict() }},
	{Type: controlplanev1.KubeadmControlPlaneDeletingCondition, Polarity: condition.Negative, Of: judged.deletion},
}

// Reasons of the condition Deleting and of its waits.
const (
	reasonWorkers  = controlplanev1.KubeadmControlPlaneDeletingWaitingForWorkersDeletionReason
	reasonMachines = controlplanev1.KubeadmControlPlaneDeletingWaitingForMachineDeletionReason
)

// judged is a snapshot with its plan and the outcome.
type judged struct {
	snapshot
	// machines are the Machines with their conditions after this reconciliation.
	machines machines.SummaryInput
	plan     reconciler.Plan
	out      reconciler.Outcome
}

func (j judged) isDeleting() bool { return !j.Plane.DeletionTimestamp.IsZero() }

// health returns the input of the conditions about the health of the control plane.
func (j judged) health() workload.HealthPlane {
	return workload.HealthPlane{
		Now: j.Now, Machines: j.machines, Managed: j.managesEtcd(), Etcd: j.Etcd.Members, EtcdProblem: j.etcdProblem(),
		Kept: j.Workload.Problem != "" && !j.isDown(), Certificates: j.certificatesAvailable(), Initialized: j.isInitialized(), Deleting: j.isDeleting(), Down: j.isDown(),
		Loss: j.recovering(j.plan).Loss().Text,
	}
}

func (j judged) initialized() condition.Verdict {
	if j.isInitialized() {
		return condition.True(controlplanev1.KubeadmControlPlaneInitializedReason)
	}
	return condition.False(controlplanev1.KubeadmControlPlaneNotInitializedReason, "Control plane not yet initialized")
}

func (j judged) certificatesAvailable() condition.Verdict {
	if j.Cluster == nil {
		return condition.Unknown(controlplanev1.KubeadmControlPlaneCertificatesInternalErrorReason, "Waiting for the Cluster to own this control plane")
	}
	state := j.Certificates
	switch {
	case len(state.Problems) > 0:
		return condition.False(controlplanev1.KubeadmControlPlaneCertificatesNotAvailableReason, state.Problems[0].Text)
	case len(state.Create) > 0 && j.out.Err != nil:
		return condition.False(controlplanev1.KubeadmControlPlaneCertificatesNotAvailableReason, "Secrets are being created")
	}
	return condition.True(controlplanev1.KubeadmControlPlaneCertificatesAvailableReason)
}

func (j judged) rollingOut() condition.Verdict {
	var members []condition.Member
	for _, m := range j.Machines {
		if v := base.Verdict(m.Machine, rolloutMessages(j.reasons(m.Machine)), nil); v.Status == metav1.ConditionFalse {
			members = append(members, condition.Member{Kind: machineKind, Name: m.Name, Conditions: condition.Set{{Type: "Outdated", Status: v.Status, Message: v.Message}}})
		}
	}
	if len(members) == 0 {
		return condition.False(controlplanev1.KubeadmControlPlaneNotRollingOutReason, rolloutFutile(j.Plane, secrets.ExpiresAt(j.Secrets[secrets.CA]), j.Now))
	}
	v := condition.Aggregate(members, condition.Part{Type: "Outdated"}, condition.Reasons{})
	return condition.TrueBecause(controlplanev1.KubeadmControlPlaneRollingOutReason,
		fmt.Sprintf("Rolling out %d not up-to-date replicas\n%s", len(members), v.Message)+j.blockedText())
}

// blockers returns the reasons that prevent a change of the number of Machines.
func (j judged) blockers() []string {
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

func (j judged) blockedText() string {
	text := ""
	for _, blocker := range j.blockers() {
		text += "\n* " + blocker
	}
	return text
}

// wanted returns the desired number of Machines, which is zero for a control plane that is being deleted.
func (j judged) wanted() int {
	if j.isDeleting() {
		return 0
	}
	return desired(j.snapshot)
}

func (j judged) scalingUp() condition.Verdict {
	if len(j.machines) >= j.wanted() {
		return condition.False(controlplanev1.KubeadmControlPlaneNotScalingUpReason, "")
	}
	return j.machines.ScalingUp(j.wanted(), j.blockers())
}

func (j judged) scalingDown() condition.Verdict {
	v := j.machines.ScalingDown(j.wanted(), j.Now)
	if v.Status == metav1.ConditionTrue {
		v.Message += j.blockedText()
	}
	return v
}

func (j judged) deletion() condition.Verdict {
	if !j.isDeleting() {
		return condition.False(controlplanev1.KubeadmControlPlaneNotDeletingReason, "")
	}
	for _, w := range j.plan.Waits {
		if w.Reason == reasonWorkers || w.Reason == reasonMachines {
			return condition.TrueBecause(w.Reason, j.machines.WithLingering(w.Message, j.Now))
		}
	}
	return condition.TrueBecause(controlplanev1.KubeadmControlPlaneDeletingDeletionCompletedReason, "Deletion completed")
}

// machineConditions are the conditions of a Machine that the control plane sets.
var machineConditions = append(condition.Table[facts]{
	{Type: clusterv1.MachineUpToDateCondition, Of: func(f facts) condition.Verdict { return f.upToDate }},
	{Type: clusterv1.MachineOwnerRemediatedCondition, Of: func(f facts) condition.Verdict { return f.remediated }},
}, componentConditions()...)

// facts is the input of the conditions of a Machine.
type facts struct {
	workload.MachineState
	upToDate, remediated condition.Verdict
}

func componentConditions() condition.Table[facts] {
	var out condition.Table[facts]
	for _, row := range workload.HealthConditions() {
		out = append(out, condition.Row[facts]{Type: row.Type, Of: func(f facts) condition.Verdict { return row.Of(f.MachineState) }})
	}
	return out
}

// isDown reports whether the workload cluster has been unreadable for longer than the grace period.
func (s snapshot) isDown() bool {
	return s.isInitialized() && s.Workload.IsDown(s.Now, s.Connection, s.Settings.ConnectionGrace)
}

// facts returns the condition input of a Machine from the latest state of the workload cluster.
func (s snapshot) facts(m machines.Member, remediated condition.Verdict) facts {
	down := s.isDown()
	f := facts{MachineState: workload.MachineState{
		Member: m, State: s.Workload, Etcd: s.Etcd, Initialized: s.isInitialized(), Managed: s.managesEtcd(),
		Keep: !down && (s.Workload.Problem != "" || s.Workload.At.IsZero()), Down: down, Lost: s.recovering(reconciler.Plan{}).Loss().Why[m.Name],
		Expired: rolloutExpired(s.rolloutMachine(m.Machine), s.Workload.Expiry, s.Now),
	}, remediated: remediated}
	f.upToDate = base.Verdict(m.Machine, rolloutMessages(s.reasons(m.Machine)), nil)
	return f
}

// evaluate returns the conditions of a Machine that the control plane sets.
func (s snapshot) evaluate(m machines.Member, remediated condition.Verdict) []metav1.Condition {
	return machineConditions.Evaluate(s.facts(m, remediated), reconciler.MomentOf(m.Machine, s.Now))
}

// judged returns a copy of a Machine with its conditions after this reconciliation.
func (s snapshot) judged(m machines.Member) *clusterv1.Machine {
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

// setConditions returns actions for the Machines whose conditions have to be updated.
func (s snapshot) setConditions(r remediationDecision) []reconciler.Action {
	var out []reconciler.Action
	for _, m := range s.Machines {
		if m.Stale {
			continue
		}
		conditions := s.evaluate(m, s.remediated(m, r))
		if names := remediationDiffering(m.Machine, conditions); len(names) > 0 {
			out = append(out, setConditions{Machine: m.Name, Types: names, Conditions: conditions})
		}
	}
	return out
}

// remediated returns the condition OwnerRemediated of a Machine: the result of this decision, or the existing
// condition of a Machine that is being deleted.
func (s snapshot) remediated(m machines.Member, r remediationDecision) condition.Verdict {
	if v, decided := r.Verdicts[m.Name]; decided {
		return v
	}
	if m.Deleted {
		return condition.Mirror(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition, condition.Absent())
	}
	return condition.Absent()
}

// isHealthy reports whether the control plane is stable and all components of all Machines are healthy.
func (s snapshot) isHealthy() bool {
	if len(s.Machines) != desired(s) || len(s.Created) > 0 || s.Workload.Problem != "" {
		return false
	}
	return !slices.ContainsFunc(s.Machines, func(m machines.Member) bool {
		return m.Deleted || workload.HealthUnhealthy(s.judged(m), s.managesEtcd()) != ""
	})
}

func (s snapshot) rolloutMachines() []RolloutMachine {
	var out []RolloutMachine
	for _, m := range s.Machines {
		out = append(out, s.rolloutMachine(m.Machine))
	}
	return out
}
