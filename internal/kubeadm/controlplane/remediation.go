package controlplane

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/machines"
)

// remediationMachine is a control plane Machine with the health of its components.
type remediationMachine struct {
	machines.OwnedMachine
	// EtcdHealthy and ComponentsHealthy are true if all respective conditions are True.
	EtcdHealthy, ComponentsHealthy bool
	// Failed means that the Machine will never have a Node, because its bootstrap has failed.
	Failed bool
	// Obstacle is the reason why etcd would lose its quorum without the Machine's member, or empty.
	Obstacle string
	// Held means that the Machine is deleted, but its etcd member cannot be removed before others are healthy.
	Held bool
}

// needsRemediation reports whether a health check requests the replacement of the Machine.
func (m remediationMachine) needsRemediation() bool {
	return !m.Deleted && machines.NeedsRemediation(m.OwnedMachine.Machine)
}

// remediationInput is the input of [planRemediation].
type remediationInput struct {
	Now  time.Time
	Spec controlplanev1.KubeadmControlPlaneRemediationSpec
	// Machines of the control plane.
	Machines []remediationMachine
	// Created are Machines that are not in the cache yet.
	Created []string
	// Initialized is true if the cluster has been initialized.
	Initialized bool
	// Managed is true if etcd runs on the Machines. EtcdUnknown is the reason why its members are unknown, or empty.
	Managed     bool
	EtcdUnknown string
	// InProgress is the record on the control plane, or nil.
	InProgress *remediationRecord
}

// remediationDecision is the result of [planRemediation].
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
func planRemediation(in remediationInput) remediationDecision {
	d := remediationDecision{Verdicts: map[string]condition.Result{}}
	asking := in.machinesToReplace()
	if len(asking) == 0 {
		return d
	}
	chosen := asking[0]
	for _, m := range asking[1:] {
		d.Verdicts[m.Name] = remediationDeferred("Waiting for Machine %s to be replaced first", chosen.Name)
	}
	verdict, recheck := in.obstacle(chosen)
	d.Verdicts[chosen.Name], d.Recheck = verdict, recheck
	if verdict == remediationDeleting() {
		d.Delete, d.Why, d.Record = chosen.Name, "a health check failed", in.record(chosen)
		if !chosen.needsRemediation() {
			d.Why = "its bootstrap has failed, and others wait for it"
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

// machinesToReplace returns the Machines to replace, in the order of replacement. A Machine that never joins is included only if
// another Machine has to be replaced, which would wait for it. Otherwise it is left to its health check.
func (in remediationInput) machinesToReplace() []remediationMachine {
	var out []remediationMachine
	others := slices.ContainsFunc(in.Machines, remediationMachine.needsRemediation)
	for _, m := range in.Machines {
		if m.needsRemediation() || others && m.Failed && !m.Deleted {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b remediationMachine) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

func (m remediationMachine) rank() int {
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

// obstacle returns the condition of the selected Machine: deleting, or the reason why it cannot be replaced.
func (in remediationInput) obstacle(chosen remediationMachine) (condition.Result, time.Duration) {
	if busy := in.busy(chosen); busy != "" {
		return remediationDeferred("Waiting for Machine %s", busy), 0
	}
	if verdict, recheck := in.retries(chosen); verdict != condition.Absent() {
		return verdict, recheck
	}
	alone := len(in.Machines) == 1
	switch {
	case alone && !in.Initialized:
		return remediationDeleting(), 0
	case alone:
		return remediationRefused("It is the only Machine of the control plane: nothing would be left of its data; add Machines, or restore a backup"), 0
	case !slices.ContainsFunc(in.Machines, func(m remediationMachine) bool {
		return m.Name != chosen.Name && !m.Deleted && m.ComponentsHealthy && (m.EtcdHealthy || !in.Managed)
	}):
		return remediationDeferred("No other Machine has all components of the control plane healthy"), 0
	case in.Managed && in.EtcdUnknown != "":
		return remediationDeferred("The members of etcd are not known: %s", in.EtcdUnknown), 0
	case in.Managed && chosen.Obstacle != "":
		return remediationDeferred("It cannot be replaced now: %s", chosen.Obstacle), 0
	}
	return remediationDeleting(), 0
}

// busy returns a Machine that must be created or deleted before another one is replaced, or the empty string.
func (in remediationInput) busy(chosen remediationMachine) string {
	for _, m := range in.Machines {
		switch {
		case m.Name == chosen.Name, m.Held:
		case m.Deleted:
			return m.Name + " to be deleted"
		case !m.Status.NodeRef.IsDefined() && !m.needsRemediation() && !m.Failed:
			return m.Name + " to be provisioned"
		}
	}
	if len(in.Created) > 0 {
		return in.Created[0] + " to be seen"
	}
	return ""
}

// retries returns the condition if the limits for failed replacements are reached, or Absent.
func (in remediationInput) retries(chosen remediationMachine) (condition.Result, time.Duration) {
	last, isRetry := in.retried(chosen)
	if !isRetry || in.isRecorded(chosen) {
		return condition.Absent(), 0
	}
	if period := seconds(in.Spec.RetryPeriodSeconds, 0); in.Now.Before(last.Timestamp.Add(period)) {
		return remediationDeferred("Waiting for the time between two retries, %s, to be over", period), last.Timestamp.Add(period).Sub(in.Now)
	}
	if most := in.Spec.MaxRetry; most != nil && last.RetryCount >= int(*most) {
		return remediationRefused("It is the replacement of Machine %s, and was replaced as often as spec.remediation.maxRetry allows: %d times", last.Machine, *most), 0
	}
	return condition.Absent(), 0
}

// retried returns the record of the Machine that m replaces. It returns false if m replaces none, or has been healthy
// for long enough not to count as a retry.
func (in remediationInput) retried(m remediationMachine) (remediationRecord, bool) {
	last, ok := remediationFor(m.OwnedMachine.Machine)
	healthy := seconds(in.Spec.MinHealthyPeriodSeconds, controlplanev1.DefaultMinHealthyPeriodSeconds)
	return last, ok && in.Now.Before(last.Timestamp.Add(healthy))
}

// isRecorded reports whether the replacement of the Machine was already decided.
func (in remediationInput) isRecorded(m remediationMachine) bool {
	if in.InProgress == nil {
		return false
	}
	if in.InProgress.Machine == m.Name {
		return true
	}
	last, isRetry := remediationFor(m.OwnedMachine.Machine)
	return isRetry && last.Machine == in.InProgress.Machine && in.InProgress.RetryCount == last.RetryCount+1
}

// record returns the record for the replacement of a Machine.
func (in remediationInput) record(m remediationMachine) remediationRecord {
	if in.isRecorded(m) {
		return *in.InProgress
	}
	last, isRetry := in.retried(m)
	if !isRetry {
		return remediationRecord{Machine: m.Name, Timestamp: in.Now.Truncate(time.Second)}
	}
	return remediationRecord{Machine: last.Machine, Timestamp: in.Now.Truncate(time.Second), RetryCount: last.RetryCount + 1}
}

func seconds(n *int32, otherwise int32) time.Duration {
	if n == nil {
		n = &otherwise
	}
	return time.Duration(*n) * time.Second
}

// isOwnReason reports whether [planRemediation] sets the reason in the condition OwnerRemediated.
func isOwnReason(reason string) bool {
	return slices.Contains([]string{
		controlplanev1.KubeadmControlPlaneMachineCannotBeRemediatedReason, controlplanev1.KubeadmControlPlaneMachineRemediationDeferredReason,
		controlplanev1.KubeadmControlPlaneMachineRemediationMachineDeletingReason,
	}, reason)
}

// conditionsToWrite returns the types of the conditions that have to be written: those that differ, and an
// OwnerRemediated condition of a remediation that is no longer requested.
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
