package clusterresourceset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// shown is the maximum number of problems that a message lists; the rest are counted.
const shown = 3

// conditions is the condition table of a ClusterResourceSet. Types and reasons are defined by Cluster API. [report]
// evaluates it after each reconciliation.
var conditions = condition.Table[conditionInput]{
	{Type: addonsv1.ClusterResourceSetResourcesAppliedCondition, Compute: conditionInput.resourcesApplied},
}

// legacy has the rows of the conditions in status.deprecated.v1beta1. [report] passes them to condition.Project.
var legacy = []condition.V1Beta1Row{{
	Type: addonsv1.ResourcesAppliedV1Beta1Condition, From: addonsv1.ClusterResourceSetResourcesAppliedCondition,
	Reason:   legacyReason,
	Severity: func(string) clusterv1.ConditionSeverity { return clusterv1.ConditionSeverityWarning },
}}

func legacyReason(reason string) string {
	switch reason {
	case addonsv1.ClusterResourceSetResourcesAppliedWrongSecretTypeReason:
		return addonsv1.WrongSecretTypeV1Beta1Reason
	case addonsv1.ClusterResourceSetResourcesNotAppliedReason:
		return addonsv1.ApplyFailedV1Beta1Reason
	}
	return reason
}

// conditionInput is the input of the conditions: the snapshot and the error of the plan.
type conditionInput struct {
	snapshot
	err error
}

// report returns the status of a ClusterResourceSet. Package reconciler calls it at the end of each reconciliation and
// writes the status.
func report(s snapshot, _ reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	if !s.Set.DeletionTimestamp.IsZero() {
		return reconciler.Report{}
	}
	status := addonsv1.ClusterResourceSetStatus{
		Conditions:         conditions.Evaluate(conditionInput{snapshot: s, err: out.Err}, reconciler.EvaluateOptionsFor(s.Set, s.Now)),
		ObservedGeneration: s.Set.Status.ObservedGeneration,
	}
	if out.Err == nil {
		status.ObservedGeneration = s.Set.Generation
	}
	status.Deprecated = &addonsv1.ClusterResourceSetDeprecatedStatus{V1Beta1: &addonsv1.ClusterResourceSetV1Beta1DeprecatedStatus{
		Conditions: condition.Project(legacy, status.Conditions, s.Set.GetV1Beta1Conditions()),
	}}
	return reconciler.Report{Status: status}
}

// unread returns the status of a set after a failed read: it is then unknown whether everything is applied. Package
// reconciler calls it instead of report.
func unread(set *addonsv1.ClusterResourceSet, now time.Time, err error) reconciler.Report {
	return report(snapshot{Set: set, Now: now}, reconciler.Plan{}, reconciler.Outcome{Err: err})
}

// resourcesApplied is True if every resource exists, can be parsed, and is applied to every cluster of the set.
func (j conditionInput) resourcesApplied() condition.Result {
	var problems []string
	reason := addonsv1.ClusterResourceSetResourcesNotAppliedReason
	for _, r := range j.Resources {
		problem := problemOf(r)
		if problem != "" {
			problems = append(problems, "* "+problem)
		}
		if r.WrongType {
			reason = addonsv1.ClusterResourceSetResourcesAppliedWrongSecretTypeReason
		}
	}
	var failed applyError
	switch {
	case errors.As(j.err, &failed):
		problems = append(problems, lines(failed)...)
	case j.err != nil:
		return condition.False(addonsv1.ClusterResourceSetResourcesAppliedInternalErrorReason, fault.UserMessage(j.err))
	}
	if slices.ContainsFunc(j.Clusters, func(m selectedCluster) bool { return !isReachable(m) && outstanding(j.snapshot, m) }) {
		problems = append(problems, "* Some Clusters are paused, not initialized or not connected; resources are applied to them when they are ready")
	}
	if len(problems) > 0 {
		return condition.False(reason, strings.Join(problems, "\n"))
	}
	return condition.True(addonsv1.ClusterResourceSetResourcesAppliedReason)
}

// problemOf returns the problem of a resource with its solution, or an empty string.
func problemOf(r resourceSource) string {
	switch {
	case r.WrongType:
		return fmt.Sprintf("Secret %s is not of type %s; create it again with that type", r.Ref.Name, addonsv1.ClusterResourceSetSecretType)
	case r.Source == nil:
		return fmt.Sprintf("%s %s does not exist", r.Ref.Kind, r.Ref.Name)
	case r.Content != nil && r.Content.Problem != "":
		return fmt.Sprintf("%s %s cannot be read: %s", r.Ref.Kind, r.Ref.Name, r.Content.Problem)
	}
	return ""
}

// lines returns the failures that users can resolve, in the order of the clusters. Conflicts are omitted, because
// they are retried at once.
func lines(e applyError) []string {
	var out []string
	for _, f := range e.failures {
		if fault.KindOf(f.err) == fault.Conflict {
			continue
		}
		if line := "* " + f.String(); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	switch {
	case len(out) == 0 && len(e.failures) > 0:
		return []string{"* Resources are being applied"}
	case len(out) > shown:
		out = append(out[:shown], fmt.Sprintf("And %d more problems", len(out)-shown))
	}
	return out
}

// outstanding reports whether any resource still has to be applied to the cluster.
func outstanding(s snapshot, m selectedCluster) bool {
	return slices.ContainsFunc(s.Resources, func(r resourceSource) bool { return usable(r) && needsApply(s, m, r) })
}
