package machineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// report returns the status and the events of a MachineSet. Package reconciler calls it at the end of each
// reconciliation and writes the status. Autoscalers read replicas and selector through the scale subresource.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	all := machines.List(s.Machines.Machines())
	n := all.Count()
	j := conditionInput{snapshot: s, machines: all, plan: p, out: out}
	status := clusterv1.MachineSetStatus{
		Conditions: conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.Set, s.Now)),
		Selector:   selectorText(s.Set),
		Replicas:   &n.Replicas, ReadyReplicas: &n.Ready, AvailableReplicas: &n.Available, UpToDateReplicas: &n.UpToDate,
		Versions:           all.Versions(),
		ObservedGeneration: s.Set.Status.ObservedGeneration,
	}
	// The generation is observed only when the owners of all Machines are known, or while the MachineSet is deleted.
	// Decide and the MachineDeployment controller rely on it.
	if out.Err == nil && (isDeleting(s) || ownership.Decide(ownershipInput(s)).IsComplete()) {
		status.ObservedGeneration = s.Set.Generation
	}
	status.Deprecated = &clusterv1.MachineSetDeprecatedStatus{V1Beta1: deprecated(j, status.Conditions)}
	return reconciler.Report{Status: status, Events: events(out)}
}

// selectorText returns the selector in the form of the scale subresource.
func selectorText(set *clusterv1.MachineSet) string {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return set.Status.Selector
	}
	return selector.String()
}

// deprecated returns the v1beta1 status, whose counters are based on the Nodes of the Machines.
func deprecated(j conditionInput, set condition.Set) *clusterv1.MachineSetV1Beta1DeprecatedStatus {
	more := append(slices.Clone(set), v1beta1Only.Evaluate(j, reconciler.EvaluateOptionsFor(j.Set, j.Now))...)
	ready := condition.Table[conditionInput]{{Type: clusterv1.ReadyCondition, Summarize: func(_ conditionInput, seen condition.Set) condition.Result {
		return condition.Summarize(seen, condition.Reasons{Info: "Ready", Issue: "NotReady", Unknown: "ReadyUnknown"},
			condition.Part{Type: created}, condition.Part{Type: resized}, condition.Part{Type: clusterv1.MachineSetMachinesReadyCondition})
	}}}
	more = append(more, ready.Evaluate(j, condition.EvaluateOptions{Generation: j.Set.Generation, Now: j.Now, Old: more})...)
	status := &clusterv1.MachineSetV1Beta1DeprecatedStatus{Conditions: condition.Project(v1beta1, more, j.Set.GetV1Beta1Conditions())}
	status.ReadyReplicas, status.AvailableReplicas = j.machines.CountNodes()
	for _, m := range j.machines {
		if machines.Subset(j.Set.Spec.Template.Labels, m.Labels) {
			status.FullyLabeledReplicas++
		}
	}
	return status
}

// events returns the events for changes of Machines.
func events(out reconciler.Outcome) []reconciler.Event {
	var list []reconciler.Event
	for _, action := range out.Done {
		switch a := action.(type) {
		case adoptMachine:
			list = append(list, reconciler.Normal("SuccessfulAdopt", "Adopted Machine %s", a.Machine))
		case transferMachines:
			list = append(list, reconciler.Normal("SuccessfulHandOver", "Handed over %s to MachineSet %s to be updated in place", machines.NamesText(a.Names), a.To))
		case machines.BeginUpdate:
			list = append(list, reconciler.Normal("UpdatingInPlace", "In-place update of Machine %s begins", a.Machine))
		}
	}
	switch a := out.Failed.(type) {
	case transferMachines:
		list = append(list, reconciler.Warning("FailedHandOver", "%s", machines.FailureText(machines.NamesText(a.Names)+" could not all be transferred", out)))
	case machines.BeginUpdate:
		list = append(list, reconciler.Warning("FailedInPlaceUpdate", "%s", machines.FailureText("In-place update of Machine "+a.Machine+" could not begin", out)))
	}
	if a, failed := out.Failed.(adoptMachine); failed {
		list = append(list, reconciler.Warning("FailedAdopt", "%s", machines.FailureText("Machine "+a.Machine+" could not be adopted", out)))
	}
	return append(list, machines.Events(out)...)
}
