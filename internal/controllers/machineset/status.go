package machineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/version"
)

// Report says the status of a MachineSet after a pass (MS-19).
func Report(s Snapshot, p loop.Plan, out loop.Outcome) loop.Report {
	n := counts(s)
	j := judged{Snapshot: s, plan: p, out: out}
	status := clusterv1.MachineSetStatus{
		Conditions: conditions.Evaluate(j, loop.MomentOf(s.Set, s.Now)),
		Selector:   selectorText(s.Set),
		Replicas:   &n.replicas, ReadyReplicas: &n.ready, AvailableReplicas: &n.available, UpToDateReplicas: &n.upToDate,
		Versions:           versions(s),
		ObservedGeneration: s.Set.Status.ObservedGeneration,
	}
	if out.Err == nil && (deleting(s) || ownership.Judge(facts(s)).Whole()) {
		status.ObservedGeneration = s.Set.Generation
	}
	status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{V1Beta1: deprecated(j, n, status.Conditions)}
	return loop.Report{Status: status, Events: events(out)}
}

// counters are the Machines by how far they are; those of v1beta1 go by their Nodes.
type counters struct {
	replicas, ready, available, upToDate   int32
	labelled, nodesReady, nodesReadyLonger int32
}

func counts(s Snapshot) counters {
	n := counters{replicas: int32(len(s.Machines))}
	for _, m := range s.Machines {
		set := condition.Set(m.Status.Conditions)
		n.ready += one(set.IsTrue(clusterv1.MachineReadyCondition))
		n.available += one(set.IsTrue(clusterv1.MachineAvailableCondition))
		n.upToDate += one(set.IsTrue(clusterv1.MachineUpToDateCondition))
		n.labelled += one(machines.Subset(s.Set.Spec.Template.Labels, m.Labels))
		node := set.IsTrue(clusterv1.MachineNodeReadyCondition)
		n.nodesReady += one(node)
		n.nodesReadyLonger += one(node && set.IsTrue(clusterv1.MachineAvailableCondition))
	}
	return n
}

func one(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// versions counts the versions that the Machines have by their spec (MS-19).
func versions(s Snapshot) []clusterv1.StatusVersion {
	n := version.Counts{}
	for _, m := range s.Machines {
		n.Add(m.Spec.Version, 1)
	}
	return n.Sorted()
}

// selectorText is the selector as the scale subresource shows it (MS-24).
func selectorText(set *clusterv1.MachineSet) string {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return set.Status.Selector
	}
	return selector.String()
}

// deprecated is the status of v1beta1 (CO-02).
func deprecated(j judged, n counters, set condition.Set) *clusterv1.MachineSetV1Beta1DeprecatedStatus {
	more := append(slices.Clone(set), older.Evaluate(j, loop.MomentOf(j.Set, j.Now))...)
	summary := condition.Table[judged]{{Type: clusterv1.ReadyCondition, Over: func(_ judged, seen condition.Set) condition.Verdict {
		return condition.Summarize(seen, condition.Reasons{Good: "Ready", Bad: "NotReady", Unknown: "ReadyUnknown"},
			condition.Part{Type: created}, condition.Part{Type: resized}, condition.Part{Type: clusterv1.MachineSetMachinesReadyCondition})
	}}}
	more = append(more, summary.Evaluate(j, condition.Moment{Generation: j.Set.Generation, Now: j.Now, Old: more})...)
	return &clusterv1.MachineSetV1Beta1DeprecatedStatus{
		Conditions:           condition.Project(legacy, more, j.Set.GetV1Beta1Conditions()),
		FullyLabeledReplicas: n.labelled, ReadyReplicas: n.nodesReady, AvailableReplicas: n.nodesReadyLonger,
	}
}

// events tells of what was done to Machines, one event for all of an action (MS-03, MS-04).
func events(out loop.Outcome) []loop.Event {
	var list []loop.Event
	for _, action := range out.Done {
		switch a := action.(type) {
		case Adopt:
			list = append(list, loop.Normal("SuccessfulAdopt", "Adopted Machine %s", a.Machine))
		case Create:
			list = append(list, loop.Normal("SuccessfulCreate", "Created %s: %s", machineNames(a.Names), a.Why))
		case Delete:
			list = append(list, loop.Normal("SuccessfulDelete", "Deleted %s: %s", machineNames(a.Names), a.Why))
		}
	}
	switch a := out.Failed.(type) {
	case Adopt:
		list = append(list, loop.Warning("FailedAdopt", "%s", notPossible("Machine "+a.Machine+" could not be adopted", out, "")))
	case Create:
		list = append(list, loop.Warning("FailedCreate", "%s", notPossible("Machines could not be created", out, a.Names)))
	case Delete:
		list = append(list, loop.Warning("FailedDelete", "%s", notPossible(machineNames(a.Names)+" could not all be deleted", out, "")))
	}
	return list
}
