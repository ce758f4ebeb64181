package machinehealthcheck

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// conditions is the condition table of a MachineHealthCheck. Types and reasons are defined by Cluster API. [report]
// evaluates it after each reconciliation.
var conditions = condition.Table[assessment]{
	{Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Compute: assessment.remediationAllowed},
}

// legacy has the rows of the conditions in status.deprecated.v1beta1. [report] passes them to condition.Project.
var legacy = []condition.V1Beta1Row{{
	Type: clusterv1.RemediationAllowedV1Beta1Condition, From: clusterv1.MachineHealthCheckRemediationAllowedCondition,
	Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning },
}}

// report returns the status of a MachineHealthCheck. Package reconciler calls it at the end of each reconciliation and
// writes the status. While no Machine can be checked, the status stays unchanged.
func report(s snapshot, _ reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	if s.Cluster != nil && s.outage() != "" {
		return reportOutage(s)
	}
	if s.Cluster == nil || s.workloadUnreadable() {
		status := s.Check.Status.DeepCopy()
		status.Conditions = without(status.Conditions, clusterv1.PausedCondition)
		return reconciler.Report{Status: status}
	}
	a := assess(s)
	status := clusterv1.MachineHealthCheckStatus{
		Conditions:          conditions.Evaluate(a, reconciler.EvaluateOptionsFor(s.Check, s.Now)),
		ExpectedMachines:    number(len(a.targets)),
		CurrentHealthy:      number(a.healthy),
		RemediationsAllowed: number(0),
		ObservedGeneration:  s.Check.Status.ObservedGeneration,
	}
	if a.unreadable == nil {
		status.RemediationsAllowed = number(a.limit.left(a.unhealthy(), len(a.targets)))
	}
	if out.Err == nil {
		status.ObservedGeneration = s.Check.Generation
	}
	for _, t := range a.targets {
		status.Targets = append(status.Targets, t.Machine.Name)
	}
	status.Deprecated = deprecated(s.Check, status.Conditions)
	return reconciler.Report{Status: status, Events: a.events()}
}

// reportOutage returns the status during an outage: remediation is not allowed, and the counters stay unchanged.
func reportOutage(s snapshot) reconciler.Report {
	a := assessment{snapshot: s}
	status := s.Check.Status.DeepCopy()
	status.Conditions = conditions.Evaluate(a, reconciler.EvaluateOptionsFor(s.Check, s.Now))
	status.Deprecated = deprecated(s.Check, status.Conditions)
	return reconciler.Report{Status: *status, Events: a.events()}
}

func deprecated(check *clusterv1.MachineHealthCheck, set condition.Set) *clusterv1.MachineHealthCheckDeprecatedStatus {
	return &clusterv1.MachineHealthCheckDeprecatedStatus{V1Beta1: &clusterv1.MachineHealthCheckV1Beta1DeprecatedStatus{
		Conditions: condition.Project(legacy, set, check.GetV1Beta1Conditions()),
	}}
}

func (a assessment) remediationAllowed() condition.Result {
	switch {
	case a.outage() != "":
		return condition.False(clusterv1.ClusterInfrastructureNotReadyReason, a.outage())
	case a.unreadable != nil:
		return condition.False(clusterv1.InternalErrorReason, a.unreadable.Error())
	case !a.allowed() && a.unhealthy() > 0:
		return condition.False(clusterv1.MachineHealthCheckTooManyUnhealthyReason, fmt.Sprintf(
			"%d of %d Machines are not started or not healthy, which %s does not allow", a.unhealthy(), len(a.targets), a.limit.text))
	}
	return condition.True(clusterv1.MachineHealthCheckRemediationAllowedReason)
}

// events returns one warning when remediation stops, with what it blocks. Machines that are only starting cause no
// warning.
func (a assessment) events() []reconciler.Event {
	v := a.remediationAllowed()
	if v.Status != metav1.ConditionFalse {
		return nil
	}
	before := condition.Set(a.Check.Status.Conditions)
	stops := !before.IsFalse(clusterv1.MachineHealthCheckRemediationAllowedCondition)
	switch {
	case a.unreadable != nil:
	case a.outage() != "":
		stops = before.IsTrue(clusterv1.MachineHealthCheckRemediationAllowedCondition)
	default:
		stops = slices.ContainsFunc(a.targets, func(t checkedMachine) bool {
			known := get(t, clusterv1.MachineHealthCheckSucceededCondition)
			return t.all.unhealthy() && (stops || known == nil || known.Status != metav1.ConditionFalse)
		})
	}
	if !stops {
		return nil
	}
	return []reconciler.Event{reconciler.Warning("RemediationRestricted", "%s", v.Message)}
}

func without(set condition.Set, conditionType string) condition.Set {
	var out condition.Set
	for _, c := range set {
		if c.Type != conditionType {
			out = append(out, c)
		}
	}
	return out
}

func number(n int) *int32 {
	out := int32(n)
	return &out
}
