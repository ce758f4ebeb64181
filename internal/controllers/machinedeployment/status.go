package machinedeployment

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// report returns the status and the events of a MachineDeployment. Package reconciler calls it at the end of each
// reconciliation and writes the status.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	all := machinesForStatus(s)
	n := all.Count()
	j := conditionInput{snapshot: s, machines: all, counts: n, plan: p}
	d := s.Deployment
	status := clusterv1.MachineDeploymentStatus{
		Conditions: conditions.Evaluate(j, reconciler.EvaluateOptionsFor(d, s.Now)),
		Replicas:   &n.Replicas, ReadyReplicas: &n.Ready, AvailableReplicas: &n.Available, UpToDateReplicas: &n.UpToDate,
		Versions: all.Versions(), Selector: metav1.FormatLabelSelector(&d.Spec.Selector), ObservedGeneration: d.Status.ObservedGeneration,
	}
	// The generation is reported as observed once the deployment was acted upon; until then it counts as restored
	// (restore.go).
	acted := ownershipWait(p) == "" && !acting[joinCluster](p) && d.Spec.Replicas != nil
	if out.Err == nil && acted && (observed(s) || unknownNodes(s) == "") {
		status.ObservedGeneration = d.Generation
	}
	status.SetTypedPhase(phase(s, n.Replicas))
	status.Deprecated = &clusterv1.MachineDeploymentDeprecatedStatus{V1Beta1: deprecated(j, status)}
	return reconciler.Report{Status: status, Events: slices.Concat(events(out), clusterEvents(s),
		reconciler.UserActionEvents(p, d.Status.Conditions, status.Conditions))}
}

// machinesForStatus returns the Machines of all MachineSets. An UpToDate condition that refers to an earlier template
// is replaced with the result for the current template, because a status that observes a generation must not
// contain counts for an earlier one.
func machinesForStatus(s snapshot) machines.List {
	var out machines.List
	for i := range s.Sets {
		set := &s.Sets[i]
		missing := rollout.OutdatedReasons(set, s.Deployment, s.Now)
		for n := range s.Machines[set.Name] {
			m := &s.Machines[set.Name][n]
			if len(missing) > 0 && condition.Set(m.Status.Conditions).IsTrue(clusterv1.MachineUpToDateCondition) {
				m = withUpToDate(m, rollout.ConditionOfChanges(m, missing, nil))
			}
			out = append(out, m)
		}
	}
	return out
}

// withUpToDate returns a copy of a Machine with another UpToDate condition.
func withUpToDate(m *clusterv1.Machine, v condition.Result) *clusterv1.Machine {
	out := *m // unchanged parts are shared
	out.Status.Conditions = slices.Clone(m.Status.Conditions)
	for i := range out.Status.Conditions {
		if c := &out.Status.Conditions[i]; c.Type == clusterv1.MachineUpToDateCondition {
			c.Status, c.Reason, c.Message = v.Status, v.Reason, v.Message
		}
	}
	return &out
}

// acting reports whether the plan has an action of the type.
func acting[A reconciler.Action](p reconciler.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a reconciler.Action) bool { _, ok := a.(A); return ok })
}

// ownershipWait returns why the ownership is not complete, or an empty string.
func ownershipWait(p reconciler.Plan) string {
	for _, reason := range []string{ownership.ReasonClusterMissing, ownership.ReasonAdopting, ownership.ReasonHidden, ownership.ReasonConflictingChild, ownership.ReasonChildMissing} {
		if message := waitMessage(p, reason); message != "" {
			return message
		}
	}
	return ""
}

// waitMessage returns the message of the plan's wait with a reason, or an empty string.
func waitMessage(p reconciler.Plan, reason string) string {
	for _, w := range p.Waits {
		if w.Reason == reason {
			return w.Message
		}
	}
	return ""
}

// phase returns the phase of the deployment. The first matching row applies:
//
//	replicas not set               Unknown
//	being deleted                  ScalingDown
//	fewer Machines than desired    ScalingUp
//	more Machines than desired     ScalingDown
//	otherwise                      Running
func phase(s snapshot, have int32) clusterv1.MachineDeploymentPhase {
	switch want := s.Deployment.Spec.Replicas; {
	case want == nil:
		return clusterv1.MachineDeploymentPhaseUnknown
	case !s.Deployment.DeletionTimestamp.IsZero():
		return clusterv1.MachineDeploymentPhaseScalingDown
	case have < *want:
		return clusterv1.MachineDeploymentPhaseScalingUp
	case have > *want:
		return clusterv1.MachineDeploymentPhaseScalingDown
	}
	return clusterv1.MachineDeploymentPhaseRunning
}

// maxUnavailable returns the limit of the strategy, or zero if the strategy is invalid. The condition Available applies
// it.
func maxUnavailable(d *clusterv1.MachineDeployment) int32 {
	limits, err := rollout.Resolve(d.Spec.Rollout.Strategy, ptr.Deref(d.Spec.Replicas, 0))
	if err != nil {
		return 0
	}
	return limits.MaxUnavailable
}

// deprecated returns the v1beta1 status.
func deprecated(j conditionInput, status clusterv1.MachineDeploymentStatus) *clusterv1.MachineDeploymentV1Beta1DeprecatedStatus {
	out := &clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{
		Conditions:    condition.Project(v1beta1(), status.Conditions, j.Deployment.GetV1Beta1Conditions()),
		ReadyReplicas: j.counts.Ready, AvailableReplicas: j.counts.Available,
		UnavailableReplicas: max(0, max(j.counts.Replicas, ptr.Deref(j.Deployment.Spec.Replicas, 0))-j.counts.Available),
	}
	if i := currentSet(j.snapshot); i >= 0 {
		out.UpdatedReplicas = int32(len(j.Machines[j.Sets[i].Name]))
	}
	return out
}

// events returns the events for changes of MachineSets.
func events(out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, done := range out.Done {
		switch a := done.(type) {
		case createSet:
			list = append(list, reconciler.Normal("SuccessfulCreate", "Created MachineSet %s with %d replicas", a.Name, a.Replicas))
			if a.Note != "" {
				list = append(list, reconciler.Normal("ReplacingMachines", "%s", a.Note))
			}
		case syncSet:
			if a.Begins {
				list = append(list, reconciler.Normal("UpdatingInPlace", "Machines of MachineSet %s are updated in place: they are transferred to MachineSet %s", a.Name, a.to))
			}
			if a.From != a.Replicas {
				list = append(list, reconciler.Normal("SuccessfulScale", "Scaled MachineSet %s from %d to %d replicas: %s", a.Name, a.From, a.Replicas, a.Why))
			}
		case adoptSet:
			list = append(list, reconciler.Normal("SuccessfulAdopt", "Adopted MachineSet %s", a.Set))
		case deleteSet:
			list = append(list, reconciler.Normal("SuccessfulDelete", "Deleted MachineSet %s: %s", a.Name, a.Why))
		}
	}
	switch a := out.Failed.(type) {
	case createSet:
		list = append(list, reconciler.Warning("FailedCreate", "MachineSet %s could not be created: %s", a.Name, out.Err))
	case syncSet:
		list = append(list, reconciler.Warning("FailedScale", "MachineSet %s could not be changed: %s", a.Name, out.Err))
	}
	return list
}
