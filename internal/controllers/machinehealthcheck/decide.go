package machinehealthcheck

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// decide computes the plan for the Machines of a MachineHealthCheck. Package reconciler calls it in each
// reconciliation, after observe. It is pure: it neither reads nor writes. By the result of the checks of a Machine, its
// conditions become:
//
//	             HealthCheckSucceeded   OwnerRemediated or a remediation request
//	healthy      True                   withdrawn
//	pending      unchanged              unchanged
//	unhealthy    False                  requested, unless too many Machines are unhealthy
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if s.Cluster == nil {
		p.WaitFor("ClusterNotFound", "Cluster %s does not exist; reconciliation resumes when it does", s.Check.Spec.ClusterName).
			For(clusterv1.ClusterKind, s.Check.Spec.ClusterName).ToChange("")
		return p
	}
	if !ownership.IsInCluster(s.Check, s.Cluster) {
		p.Do(join{Cluster: s.Cluster.Name})
	}
	if outage := s.outage(); outage != "" {
		p.WaitFor(clusterv1.ClusterInfrastructureNotReadyReason, "%s", outage).For(clusterv1.ClusterKind, s.Cluster.Name).
			ToChange("condition " + clusterv1.ClusterInfrastructureReadyCondition)
		return p
	}
	if s.Disconnected != "" {
		p.WaitFor("ClusterNotConnected", "%s; until it is, no Machine is judged", s.Disconnected).For(clusterv1.ClusterKind, s.Cluster.Name).
			ToChange("condition " + clusterv1.ClusterRemoteConnectionProbeCondition)
		return p
	}
	if s.RetryAfter > 0 {
		p.WaitFor("ClusterBusy", "The workload cluster does not respond; until it does, no Machine is checked").
			For(clusterv1.ClusterKind, s.Cluster.Name).ForTime()
		p.RecheckIn(s.RetryAfter)
		return p
	}
	a := assess(s)
	var requests []reconciler.Action // requests come last, so that a rejected one does not block the others
	rejected := false
	for _, t := range a.targets {
		p.RecheckIn(t.own.next)
		if !t.Machine.DeletionTimestamp.IsZero() {
			continue
		}
		wants := a.wants(t)
		rejected = rejected || wants.conditions.External.Reason == clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason
		switch {
		case wants.request && t.Request == nil:
			requests = append(requests, requestRemediation{Machine: t.Machine.Name, Wants: wants.conditions})
		case differs(t, wants.conditions):
			p.Do(mark{Machine: t.Machine.Name, Wants: wants.conditions})
		}
		if wants.recovered && t.Request != nil && t.Request.GetDeletionTimestamp().IsZero() {
			requests = append(requests, withdraw{Machine: t.Machine.Name, Kind: t.Request.GetKind()})
		}
	}
	p.Do(requests...)
	if rejected {
		ref := s.Check.Spec.Remediation.TemplateRef
		p.WaitFor(clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason, "%s", a.templateProblem()).For(ref.Kind, ref.Name).UntilUserActs()
	}
	return p
}

// assessment is the result of the checks of all Machines. [report] and the conditions read it.
type assessment struct {
	snapshot
	targets []checkedMachine
	// healthy is the number of healthy Machines. Machines with pending checks and Machines that are being deleted
	// do not count.
	healthy int
	limit   limit
	// unreadable is the error if the limit is invalid.
	unreadable error
}

// checkedMachine is a Machine with the results of this health check (own) and of all health checks together (all).
type checkedMachine struct {
	target
	own, all checkResult
}

func (j checkedMachine) healthy() bool {
	return !j.own.unhealthy() && j.own.next == 0 && j.Node != nil && j.Machine.DeletionTimestamp.IsZero()
}

// assess runs the checks of all Machines. decide and report call it with the same snapshot, so that the status matches
// the plan.
func assess(s snapshot) assessment {
	a := assessment{snapshot: s}
	for _, t := range s.Targets {
		j := checkedMachine{target: t, own: examine(s, s.Check.Spec.Checks, t)}
		j.all = combinedFinding(s, t, j.own)
		if j.healthy() {
			a.healthy++
		}
		a.targets = append(a.targets, j)
	}
	a.limit, a.unreadable = limitOf(s.Check.Spec.Remediation.TriggerIf, len(a.targets))
	return a
}

// combinedFinding returns the combined result of all health checks that select the Machine, ordered by name, so that
// each of them sets the same conditions on the Machine.
func combinedFinding(s snapshot, t target, own checkResult) checkResult {
	var all []checkResult
	mine := false
	for _, other := range s.Others {
		if !mine && other.Name > s.Check.Name {
			all, mine = append(all, own), true
		}
		if selects(&other, t.Machine) {
			all = append(all, examine(s, other.Spec.Checks, t))
		}
	}
	if !mine {
		all = append(all, own)
	}
	return merge(all...)
}

// unhealthy returns the number of Machines that are not healthy, which is compared with the limit.
func (a assessment) unhealthy() int { return len(a.targets) - a.healthy }

func (a assessment) allowed() bool {
	return a.outage() == "" && a.unreadable == nil && a.limit.allows(a.unhealthy())
}

// machineConditions contains the desired conditions of a Machine. The controller gives up ownership of absent ones. act
// writes them with the method mark.
type machineConditions struct{ Health, Owner, External condition.Result }

// desiredState is the desired state of a Machine.
type desiredState struct {
	conditions machineConditions
	// request is true if there must be a remediation request, recovered if an existing request must be withdrawn.
	request, recovered bool
}

func (a assessment) wants(t checkedMachine) desiredState {
	var w desiredState
	w.conditions.Health = currentVerdict(t, clusterv1.MachineHealthCheckSucceededCondition)
	switch {
	case t.all.unhealthy():
		w.conditions.Health = condition.False(t.all.reason, t.all.message())
	case hasStarted(t):
		w.conditions.Health = condition.Absent()
		w.conditions.External = currentVerdict(t, clusterv1.MachineExternallyRemediatedCondition)
		return w
	case t.all.next > 0, t.Node == nil:
		w.conditions.Owner = currentVerdict(t, clusterv1.MachineOwnerRemediatedCondition)
		w.conditions.External = currentVerdict(t, clusterv1.MachineExternallyRemediatedCondition)
		return w
	default:
		w.conditions.Health = condition.True(clusterv1.MachineHealthCheckSucceededReason)
		w.recovered = external(a.Check)
		return w
	}
	remediate := t.own.unhealthy() && a.allowed()
	w.conditions.Owner = currentVerdict(t, clusterv1.MachineOwnerRemediatedCondition)
	w.conditions.External = currentVerdict(t, clusterv1.MachineExternallyRemediatedCondition)
	if remediate && external(a.Check) {
		w.conditions.External, w.request = a.externally(t)
		return w
	}
	if have := get(t, clusterv1.MachineOwnerRemediatedCondition); remediate && (have == nil || have.Status != metav1.ConditionFalse) {
		w.conditions.Owner = condition.False(clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, waitsFor(t))
	}
	return w
}

// waitsFor returns a message that names the object whose controller has to remediate the Machine.
func waitsFor(t checkedMachine) string {
	if t.Remediator == "" {
		return "Waiting for remediation"
	}
	return fmt.Sprintf("Waiting for the provider of %s to replace the Machine", t.Remediator)
}

// hasStarted reports whether a Machine that exceeded its startup timeout has recovered: its infrastructure has
// become ready, and the timeout for its Node starts again. The Machine is then not replaced, unless the replacement
// has already begun.
func hasStarted(t checkedMachine) bool {
	have := get(t, clusterv1.MachineHealthCheckSucceededCondition)
	return have != nil && have.Status == metav1.ConditionFalse && have.Reason == clusterv1.MachineHealthCheckNodeStartupTimeoutReason &&
		isProvisioned(t.Machine) && t.NodeRead && t.Machine.Status.NodeRef.Name == "" && t.all.next > 0
}

// externally returns the condition for external remediation of the Machine, and whether there must be a request.
func (a assessment) externally(t checkedMachine) (condition.Result, bool) {
	waiting := condition.False(clusterv1.MachineExternallyRemediatedWaitingForRemediationReason, "Waiting for remediation")
	have := get(t, clusterv1.MachineExternallyRemediatedCondition)
	switch {
	case t.Request != nil && have != nil && !startedHere(*have):
		return condition.Absent(), true // the remediation controller sets the condition
	case t.Request != nil:
		return waiting, true
	case a.templateProblem() != "":
		return condition.False(clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason, a.templateProblem()), false
	}
	return waiting, true
}

// templateProblem returns why the template of remediation requests cannot be used, or an empty string.
func (a assessment) templateProblem() string {
	if a.Template.Problem != "" || a.Template.Presence() == contract.Found {
		return a.Template.Problem
	}
	ref := a.Check.Spec.Remediation.TemplateRef
	return fmt.Sprintf("%s %s does not exist; create it, or refer to another template", ref.Kind, ref.Name)
}

// startedHere reports whether this controller sets the condition. The reason of each condition that decide starts must
// be in this list, or the condition counts as another client's.
func startedHere(c metav1.Condition) bool {
	return c.Status == metav1.ConditionFalse && slices.Contains([]string{
		clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
		clusterv1.MachineExternallyRemediatedWaitingForRemediationReason,
		clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason,
		clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason,
	}, c.Reason)
}

// currentVerdict returns the current condition if this controller owns it. A condition that another client has
// changed belongs to that client.
func currentVerdict(t checkedMachine, conditionType string) condition.Result {
	have := get(t, conditionType)
	if have == nil || conditionType != clusterv1.MachineHealthCheckSucceededCondition && !startedHere(*have) {
		return condition.Absent()
	}
	return condition.Result{Status: have.Status, Reason: have.Reason, Message: have.Message}
}

func get(t checkedMachine, conditionType string) *metav1.Condition {
	return condition.Set(t.Machine.Status.Conditions).Get(conditionType)
}

// conditionTypes are the conditions that this controller sets on Machines.
func conditionTypes() []string {
	return []string{
		clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
		clusterv1.MachineExternallyRemediatedCondition,
	}
}

func (w machineConditions) of(conditionType string) condition.Result {
	switch conditionType {
	case clusterv1.MachineHealthCheckSucceededCondition:
		return w.Health
	case clusterv1.MachineOwnerRemediatedCondition:
		return w.Owner
	}
	return w.External
}

// differs reports whether a write is needed: a condition differs, or this controller owns one that it has to give
// up.
func differs(t checkedMachine, wants machineConditions) bool {
	for _, conditionType := range conditionTypes() {
		want, have := wants.of(conditionType), get(t, conditionType)
		switch {
		case want == condition.Absent():
			if slices.Contains(t.Claims, conditionType) {
				return true
			}
		case have == nil || have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message:
			return true
		}
	}
	return false
}
