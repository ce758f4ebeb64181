package machinedeployment

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/rollout"
	"github.com/slipwayhq/slipway/internal/version"
)

// counts are the Machines of a deployment, by how far they are (DP-14).
type counts struct {
	replicas, ready, available, upToDate, current int32
}

// Report says the status of a MachineDeployment after a pass.
func Report(s Snapshot, p loop.Plan, out loop.Outcome) loop.Report {
	n := count(s)
	j := judged{Snapshot: s, counts: n, plan: p}
	d := s.Deployment
	status := clusterv1.MachineDeploymentStatus{
		Conditions: conditions.Evaluate(j, loop.MomentOf(d, s.Now)),
		Replicas:   &n.replicas, ReadyReplicas: &n.ready, AvailableReplicas: &n.available, UpToDateReplicas: &n.upToDate,
		Versions: versions(s), Selector: metav1.FormatLabelSelector(&d.Spec.Selector), ObservedGeneration: d.Status.ObservedGeneration,
	}
	// The generation is observed when the deployment was acted upon; until then it counts as restored (restore.go).
	acted := unowned(p) == "" && !acting[Join](p) && d.Spec.Replicas != nil
	if out.Err == nil && acted && (observed(s) || unseen(s) == "") {
		status.ObservedGeneration = d.Generation
	}
	status.SetTypedPhase(phase(s, n))
	status.Deprecated = &clusterv1.MachineDeploymentDeprecatedStatus{V1Beta1: deprecated(s, n, status)}
	return loop.Report{Status: status, Events: events(out)}
}

// acting reports whether the plan has an action of the type.
func acting[A loop.Action](p loop.Plan) bool {
	return slices.ContainsFunc(p.Actions, func(a loop.Action) bool { _, ok := a.(A); return ok })
}

// unowned says why the ownership is not complete, empty: it is.
func unowned(p loop.Plan) string {
	for _, reason := range []string{ownership.ReasonClusterMissing, ownership.ReasonAdopting, ownership.ReasonForeign, ownership.ReasonChildMissing} {
		if message := waitOf(p, reason); message != "" {
			return message
		}
	}
	return ""
}

// waitOf returns the message of the plan's wait for a reason, empty: it does not wait for that.
func waitOf(p loop.Plan, reason string) string {
	for _, w := range p.Wait {
		if w.Reason == reason {
			return w.Message
		}
	}
	return ""
}

// count counts the Machines by their conditions.
func count(s Snapshot) counts {
	var n counts
	for _, m := range machinesOf(s) {
		set := condition.Set(m.Status.Conditions)
		n.replicas++
		n.ready += one(set.IsTrue(clusterv1.MachineReadyCondition))
		n.available += one(set.IsTrue(clusterv1.MachineAvailableCondition))
		n.upToDate += one(set.IsTrue(clusterv1.MachineUpToDateCondition))
	}
	if i := current(s); i >= 0 {
		n.current = int32(len(s.Machines[s.Sets[i].Name]))
	}
	return n
}

func one(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// versions counts the versions that the Machines have by their spec (DP-14).
func versions(s Snapshot) []clusterv1.StatusVersion {
	n := version.Counts{}
	for _, m := range machinesOf(s) {
		n.Add(m.Spec.Version, 1)
	}
	return n.Sorted()
}

// phase is where the deployment stands. Decided from top to bottom:
//
//	replicas not set               Unknown
//	deleted                        ScalingDown
//	fewer Machines than wanted     ScalingUp
//	more Machines than wanted      ScalingDown
//	otherwise                      Running
func phase(s Snapshot, n counts) clusterv1.MachineDeploymentPhase {
	switch want := s.Deployment.Spec.Replicas; {
	case want == nil:
		return clusterv1.MachineDeploymentPhaseUnknown
	case !s.Deployment.DeletionTimestamp.IsZero():
		return clusterv1.MachineDeploymentPhaseScalingDown
	case n.replicas < *want:
		return clusterv1.MachineDeploymentPhaseScalingUp
	case n.replicas > *want:
		return clusterv1.MachineDeploymentPhaseScalingDown
	}
	return clusterv1.MachineDeploymentPhaseRunning
}

// maxUnavailable of the strategy; zero where that cannot be read.
func maxUnavailable(d *clusterv1.MachineDeployment) int32 {
	limits, err := rollout.Resolve(d.Spec.Rollout.Strategy, deref(d.Spec.Replicas))
	if err != nil {
		return 0
	}
	return limits.MaxUnavailable
}

// deprecated is the status of v1beta1 (CO-02).
func deprecated(s Snapshot, n counts, status clusterv1.MachineDeploymentStatus) *clusterv1.MachineDeploymentV1Beta1DeprecatedStatus {
	return &clusterv1.MachineDeploymentV1Beta1DeprecatedStatus{
		Conditions:      condition.Project(legacy(), status.Conditions, s.Deployment.GetV1Beta1Conditions()),
		UpdatedReplicas: n.current, ReadyReplicas: n.ready, AvailableReplicas: n.available,
		UnavailableReplicas: max(0, max(n.replicas, deref(s.Deployment.Spec.Replicas))-n.available),
	}
}

// events tells what was done to MachineSets.
func events(out loop.Outcome) []loop.Event {
	var list []loop.Event
	for _, done := range out.Done {
		switch a := done.(type) {
		case CreateSet:
			list = append(list, loop.Normal("SuccessfulCreate", "Created MachineSet %s with %d replicas", a.Name, a.Replicas))
		case SyncSet:
			if a.From != a.Replicas {
				list = append(list, loop.Normal("SuccessfulScale", "Scaled MachineSet %s from %d to %d replicas: %s", a.Name, a.From, a.Replicas, a.Why))
			}
		case Adopt:
			list = append(list, loop.Normal("SuccessfulAdopt", "Adopted MachineSet %s", a.Set))
		case DeleteSet:
			list = append(list, loop.Normal("SuccessfulDelete", "Deleted MachineSet %s: %s", a.Name, a.Why))
		}
	}
	switch a := out.Failed.(type) {
	case CreateSet:
		list = append(list, loop.Warning("FailedCreate", "MachineSet %s could not be created: %s", a.Name, out.Err))
	case SyncSet:
		list = append(list, loop.Warning("FailedScale", "MachineSet %s could not be changed: %s", a.Name, out.Err))
	}
	return list
}
