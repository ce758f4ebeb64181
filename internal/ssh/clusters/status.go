package clusters

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// maxFailureDomains limits the reported failure domains. It must be the MaxItems of SSHClusterStatus.FailureDomains,
// because the API server rejects a status with more.
const maxFailureDomains = 100

// conditionInput is a snapshot with the plan, from which the conditions are computed. report evaluates the table of
// conditions with it.
type conditionInput struct {
	snapshot
	plan reconciler.Plan
}

// conditions is the table of the conditions of an SSHCluster. Ready treats VirtualIPHeld as optional, because
// VirtualIPHeld is absent without a virtual IP address.
var conditions = condition.Table[conditionInput]{
	{Type: infrav1.EndpointReadyCondition, Compute: conditionInput.endpointReady},
	{Type: infrav1.VirtualIPHeldCondition, Compute: conditionInput.virtualIPHeld},
	{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Compute: conditionInput.deleting},
	{Type: clusterv1.ReadyCondition, Summarize: conditionInput.ready},
}

func (conditionInput) ready(set condition.Set) condition.Result {
	return condition.Summarize(set, condition.Reasons{
		Info: clusterv1.ReadyReason, Issue: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason,
	}, condition.Part{Type: infrav1.EndpointReadyCondition}, condition.Part{Type: infrav1.VirtualIPHeldCondition, Optional: true})
}

func (j conditionInput) endpointReady() condition.Result {
	switch {
	case j.plan.Stage.Order == stageDeletion:
		return condition.False(clusterv1.DeletingReason, "")
	case j.plan.Stage.Message != "":
		return condition.False(j.plan.Stage.Reason, j.plan.Stage.Message)
	case j.Object.Spec.VirtualIP == "" && !j.endpoint().IsValid():
		return condition.True("ProvidedByControlPlane")
	}
	return condition.True(clusterv1.ReadyReason)
}

func (j conditionInput) deleting() condition.Result {
	if j.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	return condition.TrueBecause(clusterv1.DeletingReason, "")
}

// report computes the status and the events. The driver (package reconciler) calls it after the actions. Provisioned
// remains true once it is set, even if the SSHCluster is not ready later, because Cluster API uses it only for the
// initial provisioning: https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-cluster
func report(s snapshot, p reconciler.Plan, _ reconciler.Outcome) reconciler.Report {
	status := infrav1.SSHClusterStatus{
		ObservedGeneration: s.Object.Generation,
		Conditions:         conditions.Evaluate(conditionInput{s, p}, reconciler.EvaluateOptionsFor(s.Object, s.Now)),
		Initialization:     s.Object.Status.Initialization,
		VirtualIP:          s.virtualIPStatus(),
	}
	for _, d := range s.FailureDomains[:min(len(s.FailureDomains), maxFailureDomains)] {
		status.FailureDomains = append(status.FailureDomains, clusterv1.FailureDomain{Name: d, ControlPlane: ptr.To(true)})
	}
	if p.Stage.Order == stageReady {
		status.Initialization.Provisioned = ptr.To(true)
	}
	return reconciler.Report{Status: status, Events: reconciler.UserActionEvents(p, s.Object.Status.Conditions, status.Conditions)}
}
