package clusterclass

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// conditions is the condition table of a ClusterClass. Types and reasons are defined by Cluster API. [report] evaluates
// it after each reconciliation.
var conditions = condition.Table[snapshot]{
	{Type: clusterv1.ClusterClassVariablesReadyCondition, Compute: snapshot.variablesReady},
	{Type: clusterv1.ClusterClassRefVersionsUpToDateCondition, Compute: snapshot.refVersionsUpToDate},
}

// legacy has the rows of the conditions in status.deprecated.v1beta1. [report] passes them to condition.Project.
var legacy = []condition.V1Beta1Row{
	{
		Type: clusterv1.ClusterClassVariablesReconciledV1Beta1Condition, From: clusterv1.ClusterClassVariablesReadyCondition,
		Reason:   func(string) string { return clusterv1.VariableDiscoveryFailedV1Beta1Reason },
		Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityError },
	},
	{
		Type: clusterv1.ClusterClassRefVersionsUpToDateV1Beta1Condition, From: clusterv1.ClusterClassRefVersionsUpToDateCondition,
		Reason:   func(string) string { return clusterv1.ClusterClassOutdatedRefVersionsV1Beta1Reason },
		Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning },
	},
}

// report returns the status of a class. Package reconciler calls it at the end of each reconciliation and writes the
// status. If an extension has not responded, the variables stay unchanged and the generation is not reported as
// observed, so that Clusters wait.
func report(s snapshot, _ reconciler.Plan, _ reconciler.Outcome) reconciler.Report {
	status := clusterv1.ClusterClassStatus{
		Conditions: conditions.Evaluate(s, reconciler.EvaluateOptionsFor(s.Class, s.Now)),
		Variables:  s.Class.Status.Variables, ObservedGeneration: s.Class.Status.ObservedGeneration,
	}
	if v := s.variables(); len(v.problems) == 0 {
		status.Variables, status.ObservedGeneration = v.list, s.Class.Generation
	}
	status.Deprecated = &clusterv1.ClusterClassDeprecatedStatus{V1Beta1: &clusterv1.ClusterClassV1Beta1DeprecatedStatus{
		Conditions: condition.Project(legacy, status.Conditions, s.Class.GetV1Beta1Conditions()),
	}}
	return reconciler.Report{Status: status}
}

// variablesReady reports whether the variables of the class can be used. Variables with conflicting definitions
// cannot be set.
func (s snapshot) variablesReady() condition.Result {
	v := s.variables()
	if problem := v.problem(); problem != "" {
		return condition.False(clusterv1.ClusterClassVariablesReadyVariableDiscoveryFailedReason,
			strings.ToUpper(problem[:1])+problem[1:]+"; retrying in up to 1m. Clusters of the class wait until then")
	}
	if names := v.conflicts(); len(names) > 0 {
		return condition.TrueBecause(clusterv1.ClusterClassVariablesReadyReason, "Variables cannot be set that are defined in different ways: "+
			strings.Join(names, ", ")+"; make their definitions in the class and its extensions the same, or rename one of them")
	}
	return condition.True(clusterv1.ClusterClassVariablesReadyReason)
}

// refVersionsUpToDate lists references that do not use the newest version of their kind.
func (s snapshot) refVersionsUpToDate() condition.Result {
	var old, unreadable []string
	for _, t := range s.Templates {
		version := t.Ref.GroupVersionKind().Version
		switch {
		case t.Newest == "" && t.Problem != "":
			unreadable = append(unreadable, t.Problem)
		case t.Newest != "" && t.Newest != version:
			old = append(old, fmt.Sprintf("* %s %s is referred to in %s, use %s/%s", t.Ref.Kind, t.Ref.Name, t.Ref.APIVersion,
				t.Ref.GroupVersionKind().Group, t.Newest))
		}
	}
	slices.Sort(unreadable)
	switch {
	case len(unreadable) > 0:
		return condition.Unknown(clusterv1.ClusterClassRefVersionsUpToDateInternalErrorReason, strings.Join(slices.Compact(unreadable), "; "))
	case len(old) > 0:
		return condition.False(clusterv1.ClusterClassRefVersionsNotUpToDateReason, strings.Join(old, "\n"))
	}
	return condition.True(clusterv1.ClusterClassRefVersionsUpToDateReason)
}
