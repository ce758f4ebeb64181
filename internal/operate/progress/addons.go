package progress

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
)

// addons returns the step for CoreDNS and kube-proxy, which Available of the Cluster does not include. It returns false
// if the control plane has no add-ons, or does not report them. Without Nodes, they cannot run and are not waited for.
// creation adds it to its steps.
func (b builder) addons() (Step, bool) {
	ref := b.Cluster.Spec.ControlPlaneRef
	has := find(object(b.Snapshot, ref), hostedv1.AddonsAvailableCondition)
	if has == nil || has.Reason == hostedv1.AddonsNotNeededReason {
		return Step{}, false
	}
	step := Step{Name: "add-ons", DoneWhen: ref.Kind + " " + ref.Name + " reports that the add-ons are available"}
	switch {
	case has.Status == metav1.ConditionTrue:
		step.Done = true
	case has.Reason == hostedv1.AddonsNoNodesReason && b.desiredNodes() == 0:
		step.Done, step.Detail = true, "they start on the first Node"
	default:
		step.Detail = flat(has.Message)
	}
	return step, true
}

// desiredNodes returns the number of Nodes that the specs of the cluster ask for.
func (b builder) desiredNodes() int {
	n := len(b.Machines)
	for i := range b.Deployments {
		n += int(value(b.Deployments[i].Spec.Replicas, 1))
	}
	for i := range b.Sets {
		n += int(value(b.Sets[i].Spec.Replicas, 1))
	}
	for i := range b.Pools {
		n += int(value(b.Pools[i].Spec.Replicas, 1))
	}
	return n
}
