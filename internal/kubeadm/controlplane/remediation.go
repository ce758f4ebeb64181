package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
)

// needsRemediation reports whether a health check requests the replacement of the Machine. This file decides which
// Machine is replaced ([snapshot.planRemediation]); [remediate] deletes it, and a later reconciliation creates the
// replacement as for any missing Machine.
func (m memberMachine) needsRemediation() bool {
	return !m.Deleted && machines.NeedsRemediation(m.OwnedMachine.Machine)
}

// remediationDecision is the decision about unhealthy Machines. [snapshot.withMembers] computes it for each snapshot,
// and [remediate] acts on it.
type remediationDecision struct {
	// Delete is the name of the Machine to replace, or empty. Why is the reason.
	Delete, Why string
	// Record is the record to store for the replacement.
	Record remediationRecord
	// Verdicts are the OwnerRemediated conditions of the Machines for which a health check requests a replacement.
	Verdicts map[string]condition.Result
	// Recheck is the delay until the next decision, or zero if an event triggers it.
	Recheck time.Duration
}

// planRemediation selects the Machine to replace according to the table in the package documentation.
func (s snapshot) planRemediation() remediationDecision {
	d := remediationDecision{Verdicts: map[string]condition.Result{}}
	requested := s.machinesToReplace()
	if len(requested) == 0 {
		return d
	}
	chosen := requested[0]
	for _, m := range requested[1:] {
		d.Verdicts[m.Name] = remediationDeferred("Waiting for Machine %s to be replaced first", chosen.Name)
	}
	verdict, recheck := s.remediationVerdict(chosen)
	d.Verdicts[chosen.Name], d.Recheck = verdict, recheck
	if verdict == remediationDeleting() {
		d.Delete, d.Why, d.Record = chosen.Name, "a health check failed", s.remediationRecord(chosen)
		if !chosen.needsRemediation() {
			d.Why = "its bootstrap has failed, and other Machines wait for it"
		}
	}
	return d
}

func remediationDeleting() condition.Result {
	return condition.False(controlplanev1.KubeadmControlPlaneMachineRemediationMachineDeletingReason, "Machine is deleted to be replaced")
}

func remediationDeferred(format string, args ...any) condition.Result {
	return condition.False(controlplanev1.KubeadmControlPlaneMachineRemediationDeferredReason, fmt.Sprintf(format, args...))
}

func remediationRefused(format string, args ...any) condition.Result {
	return condition.False(controlplanev1.KubeadmControlPlaneMachineCannotBeRemediatedReason, fmt.Sprintf(format, args...))
}

// machinesToReplace returns the Machines to replace, in the order of replacement. A Machine that never joins is
// included only if another Machine has to be replaced, which would wait for it. Otherwise it is left to its health
// check.
func (s snapshot) machinesToReplace() []memberMachine {
	var out []memberMachine
	others := slices.ContainsFunc(s.Members, memberMachine.needsRemediation)
	for _, m := range s.Members {
		if m.needsRemediation() || others && m.Failed && !m.Deleted {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b memberMachine) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

// rank returns the rank for remediation. Machines with the lowest rank are replaced first.
func (m memberMachine) rank() int {
	_, marked := m.Annotations[clusterv1.RemediateMachineAnnotation]
	switch {
	case marked:
		return 0
	case !m.Status.NodeRef.IsDefined():
		return 1
	case !m.EtcdHealthy:
		return 2
	case !m.ComponentsHealthy:
		return 3
	}
	return 4
}

// remediationVerdict returns the condition of the selected Machine: deleting, or the reason why it cannot be replaced.
func (s snapshot) remediationVerdict(chosen memberMachine) (condition.Result, time.Duration) {
	if busy := s.blockingMachine(chosen); busy != "" {
		return remediationDeferred("Waiting for Machine %s", busy), 0
	}
	if verdict, recheck := s.retryLimit(chosen); verdict != condition.Absent() {
		return verdict, recheck
	}
	alone := len(s.Members) == 1
	switch {
	case alone && !s.isInitialized():
		return remediationDeleting(), 0
	case alone:
		return remediationRefused("The data of the control plane would be lost with its only Machine: add Machines, or restore a backup"), 0
	case !slices.ContainsFunc(s.Members, func(m memberMachine) bool {
		return m.Name != chosen.Name && !m.Deleted && m.ComponentsHealthy && (m.EtcdHealthy || !s.managesEtcd())
	}):
		return remediationDeferred("No other Machine has all components of the control plane healthy"), 0
	case s.managesEtcd() && s.etcdProblem() != "":
		return remediationDeferred("The etcd members are unknown: %s", s.etcdProblem()), 0
	case s.managesEtcd() && chosen.Obstacle != "":
		return remediationDeferred("The Machine cannot be replaced now: %s", chosen.Obstacle), 0
	}
	return remediationDeleting(), 0
}

// blockingMachine returns a Machine that must be created or deleted before another one is replaced, or the empty
// string.
func (s snapshot) blockingMachine(chosen memberMachine) string {
	for _, m := range s.Members {
		switch {
		case m.Name == chosen.Name, m.Held:
		case m.Deleted:
			return m.Name + " to be deleted"
		case !m.Status.NodeRef.IsDefined() && !m.needsRemediation() && !m.Failed:
			return m.Name + " to be provisioned"
		}
	}
	if len(s.Created) > 0 {
		return s.Created[0] + " to be visible in the cache"
	}
	return ""
}

// retryLimit returns the condition if the limits for failed replacements are reached, or Absent.
func (s snapshot) retryLimit(chosen memberMachine) (condition.Result, time.Duration) {
	last, isRetry := s.recentRemediation(chosen)
	if !isRetry || s.isRecorded(chosen) {
		return condition.Absent(), 0
	}
	if period := seconds(s.ControlPlane.Spec.Remediation.RetryPeriodSeconds, 0); s.Now.Before(last.Timestamp.Add(period)) {
		return remediationDeferred("Waiting for the retry period of %s to end", period), last.Timestamp.Add(period).Sub(s.Now)
	}
	if most := s.ControlPlane.Spec.Remediation.MaxRetry; most != nil && last.RetryCount >= int(*most) {
		return remediationRefused("The Machine replaces Machine %s, and the limit of %d retries in spec.remediation.maxRetry is reached", last.Machine, *most), 0
	}
	return condition.Absent(), 0
}

// recentRemediation returns the record of the Machine that m replaces. It returns false if m replaces none, or has been
// healthy for long enough not to count as a retry.
func (s snapshot) recentRemediation(m memberMachine) (remediationRecord, bool) {
	last, ok := remediationFor(m.OwnedMachine.Machine)
	healthy := seconds(s.ControlPlane.Spec.Remediation.MinHealthyPeriodSeconds, controlplanev1.DefaultMinHealthyPeriodSeconds)
	return last, ok && s.Now.Before(last.Timestamp.Add(healthy))
}

// isRecorded reports whether the replacement of the Machine was already decided.
func (s snapshot) isRecorded(m memberMachine) bool {
	inProgress, is := remediationInProgress(s.ControlPlane)
	if !is || inProgress.Machine == m.Name {
		return is
	}
	last, isRetry := remediationFor(m.OwnedMachine.Machine)
	return isRetry && last.Machine == inProgress.Machine && inProgress.RetryCount == last.RetryCount+1
}

// remediationRecord returns the record for the replacement of a Machine.
func (s snapshot) remediationRecord(m memberMachine) remediationRecord {
	if inProgress, _ := remediationInProgress(s.ControlPlane); s.isRecorded(m) {
		return inProgress
	}
	last, isRetry := s.recentRemediation(m)
	if !isRetry {
		return remediationRecord{Machine: m.Name, Timestamp: s.Now.Truncate(time.Second)}
	}
	return remediationRecord{Machine: last.Machine, Timestamp: s.Now.Truncate(time.Second), RetryCount: last.RetryCount + 1}
}

func seconds(n *int32, otherwise int32) time.Duration {
	return time.Duration(ptr.Deref(n, otherwise)) * time.Second
}

// isOwnReason reports whether [snapshot.planRemediation] sets the reason in the condition OwnerRemediated.
func isOwnReason(reason string) bool {
	return slices.Contains([]string{
		controlplanev1.KubeadmControlPlaneMachineCannotBeRemediatedReason, controlplanev1.KubeadmControlPlaneMachineRemediationDeferredReason,
		controlplanev1.KubeadmControlPlaneMachineRemediationMachineDeletingReason,
	}, reason)
}

// conditionsToWrite returns the types of the conditions that have to be written: those that differ, and an
// OwnerRemediated condition of a remediation that is no longer requested. [decide] plans a write of the conditions if
// it returns any.
func conditionsToWrite(m *clusterv1.Machine, want []metav1.Condition) []string {
	have, set := condition.Set(m.Status.Conditions), condition.Set(want)
	var out []string
	for _, c := range want {
		old := have.Get(c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
			out = append(out, c.Type)
		}
	}
	remediated := have.Get(clusterv1.MachineOwnerRemediatedCondition)
	if remediated != nil && set.Get(clusterv1.MachineOwnerRemediatedCondition) == nil && isOwnReason(remediated.Reason) {
		out = append(out, clusterv1.MachineOwnerRemediatedCondition)
	}
	return out
}
