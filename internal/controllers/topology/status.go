package topology

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
)

// conditionInput is the input of the condition: the snapshot, the plan and its outcome.
type conditionInput struct {
	snapshot
	plan reconciler.Plan
	out  reconciler.Outcome
}

// conditions is the condition table of the controller. The Cluster controller writes the other conditions of Clusters.
// [report] evaluates it after each reconciliation.
var conditions = condition.Table[conditionInput]{{Type: clusterv1.ClusterTopologyReconciledCondition, Compute: conditionInput.reconciled}}

// report returns the TopologyReconciled condition and the upgrade plans of a topology. Package reconciler calls it at
// the end of each reconciliation and writes them to the Cluster.
func report(s snapshot, p reconciler.Plan, out reconciler.Outcome) reconciler.Report {
	if !s.Cluster.Spec.Topology.IsDefined() || s.NoFinalizer {
		return reconciler.Report{}
	}
	j := conditionInput{s, p, out}
	list := conditions.Evaluate(j, reconciler.EvaluateOptionsFor(s.Cluster, s.Now))
	if last := j.lastCondition(); last != nil && j.keepsLast() { // including its generation, because it does not describe a newer one
		list = []metav1.Condition{*last}
	}
	status := map[string]any{"conditions": list}
	if !j.decided() {
		return reconciler.Report{Status: status, Events: events(out)}
	}
	v := s.Lifecycle
	if plan := upgradePlan(v.Plan.ControlPlane); plan != nil {
		status["controlPlane"] = map[string]any{"upgradePlan": plan}
	}
	if plan := upgradePlan(v.Plan.Workers); plan != nil {
		status["workers"] = map[string]any{"upgradePlan": plan}
	}
	return reconciler.Report{Status: status, Events: append(events(out), hookEvents(j)...)}
}

// maxPlan is the maximum number of versions of an upgrade plan in the API.
const maxPlan = 32

func upgradePlan(versions []string) []clusterv1.StatusUpgradePlanVersion {
	var out []clusterv1.StatusUpgradePlanVersion
	for _, v := range versions[:min(len(versions), maxPlan)] {
		out = append(out, clusterv1.StatusUpgradePlanVersion{Version: v})
	}
	return out
}

// decided reports whether there is a lifecycle decision: the class exists and the hooks were called.
func (j conditionInput) decided() bool {
	return (j.Class != nil || !j.Cluster.DeletionTimestamp.IsZero()) && len(j.Lifecycle.Calls) == 0
}

// lastCondition returns the current condition, or nil.
func (j conditionInput) lastCondition() *metav1.Condition {
	return condition.Set(j.Cluster.Status.Conditions).Get(clusterv1.ClusterTopologyReconciledCondition)
}

// keepsLast reports whether the current condition is retained for now, because another reconciliation follows at
// once, or as soon as an extension can be called. A failure is not retained, because it may already be resolved.
func (j conditionInput) keepsLast() bool {
	if isConflict(j.out.Err) {
		return true
	}
	last := j.lastCondition()
	if !j.Lifecycle.KeepsCondition || j.out.Err != nil || last != nil && last.Reason == clusterv1.ClusterTopologyReconciledFailedReason {
		return false
	}
	return !slices.ContainsFunc(j.plan.Waits, isFailure)
}

func isConflict(err error) bool { return err != nil && fault.KindOf(err) == fault.Conflict }

func isFailure(w reconciler.Wait) bool {
	return w.Reason == clusterv1.ClusterTopologyReconciledFailedReason
}

func (j conditionInput) reconciled() condition.Result {
	_, retries := j.out.Failed.(retryFailures)
	last := j.lastCondition()
	switch {
	case j.keepsLast() && last != nil:
		return condition.Result{Status: last.Status, Reason: last.Reason, Message: last.Message}
	case j.keepsLast():
		return condition.Unknown(clusterv1.ClusterTopologyReconciledClusterCreatingReason, "Cluster is being created")
	case j.out.Err != nil && !retries: // the waits describe the errors that are retried
		failures := slices.DeleteFunc(slices.Clone(j.plan.Waits), func(w reconciler.Wait) bool { return !isFailure(w) })
		return condition.False(clusterv1.ClusterTopologyReconciledFailedReason, messageOf(failures, failure(j.out.Err)))
	}
	waits := slices.DeleteFunc(slices.Clone(j.plan.Waits), func(w reconciler.Wait) bool { return w.Reason == hookBlocking })
	slices.SortStableFunc(waits, func(a, b reconciler.Wait) int { return cmp.Compare(rank(a), rank(b)) })
	switch {
	case len(waits) == 0 && j.Lifecycle.KeepsCondition:
		return condition.Unknown(clusterv1.ClusterTopologyReconciledHookBlockingReason, "Waiting until the Runtime Extensions of the lifecycle hooks can be called")
	case len(waits) == 0:
		return condition.True(clusterv1.ClusterTopologyReconcileSucceededReason)
	}
	return condition.False(waits[0].Reason, messageOf(waits))
}

// messageOf joins the messages of the waits into one line for each.
func messageOf(waits []reconciler.Wait, first ...string) string {
	lines := slices.Clone(first)
	for _, w := range waits {
		for line := range strings.SplitSeq(w.Message, "\n") {
			lines = append(lines, strings.TrimPrefix(line, "* "))
		}
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return "* " + strings.Join(lines, "\n* ")
}

// unread returns the status of a topology after a failed read: it is then unknown whether the topology is reconciled.
// Package reconciler calls it instead of report.
func unread(cluster *clusterv1.Cluster, now time.Time, err error) reconciler.Report {
	if !cluster.Spec.Topology.IsDefined() {
		return reconciler.Report{}
	}
	table := condition.Table[error]{{Type: clusterv1.ClusterTopologyReconciledCondition, Compute: func(err error) condition.Result {
		return condition.False(clusterv1.ClusterTopologyReconciledFailedReason, failure(err))
	}}}
	status := map[string]any{"conditions": table.Evaluate(err, reconciler.EvaluateOptionsFor(cluster, now))}
	if c := cluster.Status.ControlPlane; c != nil && len(c.UpgradePlan) > 0 {
		status["controlPlane"] = map[string]any{"upgradePlan": c.UpgradePlan}
	}
	if w := cluster.Status.Workers; w != nil && len(w.UpgradePlan) > 0 {
		status["workers"] = map[string]any{"upgradePlan": w.UpgradePlan}
	}
	return reconciler.Report{Status: status}
}

// rank orders failures before waits that only take time.
func rank(w reconciler.Wait) int {
	if isFailure(w) {
		return 0
	}
	return 1
}

// failure returns the message of an error for users, with a note if it is retried.
func failure(err error) string {
	text := message(err)
	if fault.KindOf(err) != fault.Invalid {
		text += "; retrying"
	}
	return text
}

// events returns the events for the completed actions.
func events(out reconciler.Outcome) []reconciler.Event {
	return eventsOf(out.Done)
}

func eventsOf(done []reconciler.Action) []reconciler.Event {
	var list []reconciler.Event
	for _, action := range done {
		switch a := action.(type) {
		case create:
			list = append(list, reconciler.Normal("TopologyCreate", "Created %s %s", a.Part.Want.GetKind(), a.Part.Want.GetName()))
		case apply:
			list = append(list, updated(a.Part))
		case scale:
			list = append(list, updated(a.Part))
		case groups:
			for _, group := range a.Each {
				list = append(list, eventsOf(group.Steps)...)
			}
		case deleteObject:
			list = append(list, reconciler.Normal("TopologyDelete", "Deleted %s %s", a.Kind, a.Name))
		}
	}
	return list
}

// updated returns the event for an updated part. If another client had changed the replicas, the event explains
// that they must be changed in the Cluster.
func updated(part *topology.Part) reconciler.Event {
	kind, name := part.Want.GetKind(), part.Want.GetName()
	had, known := topology.Replicas(part.Live)
	if want, set := topology.Replicas(part.Want); known && set && had != want {
		return reconciler.Normal("TopologyUpdate", "Updated %s %s from %d to %d replicas, as spec.topology of the Cluster requires; change them there", kind, name, had, want)
	}
	return reconciler.Normal("TopologyUpdate", "Updated %s %s", kind, name)
}

// hookEvents returns the events for hook responses: operations that a hook allowed, and operations that it blocks
// if the condition did not report that before.
func hookEvents(j conditionInput) []reconciler.Event {
	var list []reconciler.Event
	v := j.Lifecycle
	for _, r := range v.Released {
		list = append(list, reconciler.Normal("HookCompleted", "Hook %s completed by handlers: %s", r.Hook, strings.Join(r.Handlers, ", ")))
	}
	if last := j.lastCondition(); j.out.Err == nil && last != nil && last.Message == j.reconciled().Message {
		return list
	}
	for _, blocked := range v.Blocking {
		for _, by := range blocked.By {
			list = append(list, reconciler.Normal(hookBlocking, "Hook %s: %s; it blocks the %s and is called again in %s",
				blocked.Hook, by, blocked.Action, by.RetryAfter))
		}
	}
	return list
}
