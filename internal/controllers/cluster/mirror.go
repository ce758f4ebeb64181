package cluster

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	missing = contract.Missing
	older   = contract.V1Beta1
)

// mirrored says which condition of a provider object is repeated, and how to do
// without it.
type mirrored struct {
	conditionType, good, bad string
	// fallback judges an object that does not have the condition; waiting is why
	// it would not be good.
	fallback bool
	waiting  string
}

// mirror repeats a condition of a provider object (CL-16, CL-17).
func (j judged) mirror(l link, m mirrored) condition.Verdict {
	switch {
	case !l.ref.IsDefined() && j.Cluster.Spec.Topology.IsDefined():
		return condition.False(clusterv1.ObjectDoesNotExistReason, "Waiting for the topology of the Cluster to be reconciled")
	case l.problem != "":
		return condition.Unknown(clusterv1.InternalErrorReason, l.problem)
	case l.ref.IsDefined() && l.object == nil:
		return gone(l, !deleting(j.Snapshot))
	case l.object != nil:
		f := l.object.Condition(m.conditionType)
		if err := f.Err(); err != nil {
			return condition.Unknown(clusterv1.InvalidConditionReportedReason, err.Error())
		}
		if c, ok := f.Get(); ok {
			return condition.Verdict{Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	if m.fallback {
		return condition.True(m.good)
	}
	if l.object == nil {
		return condition.False(m.bad, "The "+string(l.what)+" is not there yet")
	}
	return condition.False(m.bad, fmt.Sprintf("%s %s", l.ref.Kind, m.waiting)+ownership.MissingWatchLabel(j.Cluster, l.object))
}

// gone is the verdict over an object that is not there: deleted where it was there before.
func gone(l link, stays bool) condition.Verdict {
	switch {
	case !l.reached && stays:
		return condition.False(clusterv1.ObjectDoesNotExistReason, l.ref.Kind+" does not exist")
	case stays:
		return condition.False(clusterv1.ObjectDeletedReason, l.ref.Kind+" has been deleted while the Cluster still exists")
	}
	return condition.False(clusterv1.ObjectDeletedReason, l.ref.Kind+" has been deleted")
}

func members(machines []*clusterv1.Machine) []condition.Member {
	out := make([]condition.Member, 0, len(machines))
	for _, m := range machines {
		out = append(out, condition.Member{Kind: "Machine", Name: m.Name, Conditions: m.Status.Conditions})
	}
	return out
}

func (j judged) deploymentMembers() []condition.Member {
	var out []condition.Member
	for _, d := range j.Deployments {
		out = append(out, condition.Member{Kind: "MachineDeployment", Name: d.Name, Conditions: d.Status.Conditions})
	}
	return out
}

func (j judged) poolMembers() []condition.Member {
	var out []condition.Member
	for _, p := range j.Pools {
		out = append(out, condition.Member{Kind: "MachinePool", Name: p.Name, Conditions: p.Status.Conditions})
	}
	return out
}

// setMembers are the MachineSets that belong to no MachineDeployment.
func (j judged) setMembers() []condition.Member {
	var out []condition.Member
	for i, m := range j.Sets {
		if standalone(&j.Sets[i]) {
			out = append(out, condition.Member{Kind: "MachineSet", Name: m.Name, Conditions: m.Status.Conditions})
		}
	}
	return out
}

func (j judged) controlPlaneMember(conditionType string) []condition.Member {
	if j.ControlPlane == nil {
		return nil
	}
	c, ok := j.ControlPlane.Condition(conditionType).Get()
	if !ok {
		return nil
	}
	return []condition.Member{{Kind: j.ControlPlane.GetKind(), Name: j.ControlPlane.GetName(), Conditions: condition.Set{c}}}
}

// legacyReady is a condition that only the projection to v1beta1 sees.
const legacyReady = "ReadyV1Beta1"

// withLegacyReady adds the summary that v1beta1 calls Ready (CL-27).
func withLegacyReady(s Snapshot, set condition.Set) condition.Set {
	v := condition.Summarize(set, condition.Reasons{Good: clusterv1.ReadyReason, Bad: clusterv1.NotReadyReason, Unknown: clusterv1.ReadyUnknownReason},
		condition.Part{Type: clusterv1.ClusterControlPlaneAvailableCondition}, condition.Part{Type: clusterv1.ClusterInfrastructureReadyCondition})
	table := condition.Table[condition.Verdict]{{Type: legacyReady, Of: func(v condition.Verdict) condition.Verdict { return v }}}
	return append(append(condition.Set{}, set...), table.Evaluate(v, condition.Moment{Now: s.Now})...)
}

// legacy is the projection to v1beta1 (CL-27, CO-02).
func legacy(s Snapshot) []condition.Legacy {
	notInitialized := clusterv1.WaitingForControlPlaneProviderInitializedV1Beta1Reason
	if !s.Cluster.Spec.ControlPlaneRef.IsDefined() {
		notInitialized = clusterv1.MissingNodeRefV1Beta1Reason
	}
	return []condition.Legacy{
		{Type: clusterv1.ReadyV1Beta1Condition, From: legacyReady},
		{Type: clusterv1.InfrastructureReadyV1Beta1Condition, From: clusterv1.ClusterInfrastructureReadyCondition,
			Reason: renamed(clusterv1.NotReadyReason, clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason), Severity: severity},
		{Type: clusterv1.ControlPlaneReadyV1Beta1Condition, From: clusterv1.ClusterControlPlaneAvailableCondition,
			Reason: renamed(clusterv1.NotAvailableReason, clusterv1.WaitingForControlPlaneFallbackV1Beta1Reason), Severity: severity},
		{Type: clusterv1.ControlPlaneInitializedV1Beta1Condition, From: clusterv1.ClusterControlPlaneInitializedCondition, Sticky: true,
			Reason: renamed(clusterv1.ClusterControlPlaneNotInitializedReason, notInitialized)},
	}
}

// renamed gives one reason its name of v1beta1; a deleted object is called Deleted there.
func renamed(reason, name string) func(string) string {
	return func(r string) string {
		switch r {
		case reason:
			return name
		case clusterv1.ObjectDeletedReason:
			return clusterv1.DeletedV1Beta1Reason
		}
		return r
	}
}

// severity tells what is only waited for from what a person has to look at.
func severity(reason string) clusterv1.ConditionSeverity {
	switch reason {
	case clusterv1.ObjectDeletedReason:
		return clusterv1.ConditionSeverityError
	case clusterv1.InvalidConditionReportedReason, clusterv1.InternalErrorReason:
		return clusterv1.ConditionSeverityWarning
	}
	return clusterv1.ConditionSeverityInfo
}
