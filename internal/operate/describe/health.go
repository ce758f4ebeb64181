package describe

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// Remediation is an upcoming remediation of a Machine by a MachineHealthCheck, which the row of the Machine shows.
// `slipway describe cluster -o json` prints it, so the JSON names must stay.
type Remediation struct {
	HealthCheck string `json:"healthCheck"`
	// At is the time when the timeout of the check expires.
	At metav1.Time `json:"at"`
	// Condition is the condition that makes the Machine unhealthy.
	Condition string `json:"because"`
	// BlockedReason is the reason why the Machine will not be remediated; empty if it will be.
	BlockedReason string `json:"held,omitempty"`
}

// text describes the remediation in one sentence. With a zero now it does not mention the remaining time. [Render]
// calls it for the message column.
func (r Remediation) text(now time.Time) string {
	switch left := r.At.Sub(now); {
	case r.BlockedReason != "":
		return fmt.Sprintf("MachineHealthCheck %s does not remediate it: %s", r.HealthCheck, r.BlockedReason)
	case now.IsZero():
		return fmt.Sprintf("MachineHealthCheck %s remediates it: %s", r.HealthCheck, r.Condition)
	case left <= 0:
		return fmt.Sprintf("MachineHealthCheck %s is about to remediate it: %s", r.HealthCheck, r.Condition)
	default:
		return fmt.Sprintf("MachineHealthCheck %s remediates it in %s: %s", r.HealthCheck, duration.HumanDuration(left), r.Condition)
	}
}

// remediation returns the earliest upcoming remediation of the Machine, while the timeout of a check is running. No API
// field has this information, so it is computed from the conditions, by the rules of the MachineHealthCheck controller.
// Node conditions other than Ready are not available. [Build] adds it to the row of the Machine.
func (b builder) remediation(m *clusterv1.Machine) *Remediation {
	checks := make([]*clusterv1.MachineHealthCheck, len(b.Checks))
	for i := range b.Checks {
		checks[i] = &b.Checks[i]
	}
	return UpcomingRemediation(b.Cluster, checks, m)
}

// UpcomingRemediation returns the earliest upcoming remediation of a Machine by the MachineHealthChecks of its Cluster,
// or nil. The tree calls it for each Machine, and `slipway explain` (package rootcause) for the explained one. Its
// rules must agree with the MachineHealthCheck controller.
func UpcomingRemediation(c *clusterv1.Cluster, checks []*clusterv1.MachineHealthCheck, m *clusterv1.Machine) (first *Remediation) {
	if !m.DeletionTimestamp.IsZero() || !appliesHealthChecks(c, m) {
		return nil
	}
	for _, check := range checks {
		if !appliesTo(check, m) {
			continue
		}
		at, why := deadline(check.Spec.Checks, m)
		if why == "" || first != nil && !at.Before(first.At.Time) {
			continue
		}
		first = &Remediation{HealthCheck: check.Name, At: metav1.NewTime(at), Condition: why}
		if set := condition.Set(check.Status.Conditions); set.IsFalse(clusterv1.MachineHealthCheckRemediationAllowedCondition) {
			first.BlockedReason = set.Get(clusterv1.MachineHealthCheckRemediationAllowedCondition).Message
		} else {
			first.BlockedReason = rejectedRemediation(m)
		}
	}
	return first
}

// rejectedRemediation returns the message of the condition with which the remediation of a Machine is rejected, or an empty
// string.
func rejectedRemediation(m *clusterv1.Machine) string {
	reasons := []string{
		clusterv1.MachineSetMachineCannotBeRemediatedReason, clusterv1.MachineSetMachineRemediationDeferredReason,
		clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason, clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason,
	}
	for _, conditionType := range []string{clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineExternallyRemediatedCondition} {
		c := condition.Set(m.Status.Conditions).Get(conditionType)
		if c != nil && c.Status == metav1.ConditionFalse && slices.Contains(reasons, c.Reason) {
			return c.Message
		}
	}
	return ""
}

// appliesHealthChecks reports whether MachineHealthChecks apply to the Machine now: to workers once the control plane
// is initialized, and to no Machine while the Cluster is paused or its infrastructure is not ready.
func appliesHealthChecks(c *clusterv1.Cluster, m *clusterv1.Machine) bool {
	if c.Spec.Paused != nil && *c.Spec.Paused || condition.Set(c.Status.Conditions).IsFalse(clusterv1.ClusterInfrastructureReadyCondition) {
		return false
	}
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	reached := c.Status.Initialization.ControlPlaneInitialized
	return controlPlane || reached != nil && *reached
}

// appliesTo reports whether the check applies to the Machine.
func appliesTo(check *clusterv1.MachineHealthCheck, m *clusterv1.Machine) bool {
	for _, mark := range []string{clusterv1.MachineSkipRemediationAnnotation, clusterv1.PausedAnnotation} {
		if _, marked := m.Annotations[mark]; marked {
			return false
		}
	}
	_, paused := check.Annotations[clusterv1.PausedAnnotation]
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	return !paused && err == nil && !selector.Empty() && selector.Matches(labels.Set(m.Labels))
}

// deadline returns the earliest time at which a failing check makes the Machine unhealthy, and the failed condition;
// empty if no check fails.
func deadline(checks clusterv1.MachineHealthCheckChecks, m *clusterv1.Machine) (first time.Time, why string) {
	have := condition.Set(m.Status.Conditions)
	under := func(c *metav1.Condition, timeout *int32, text string) {
		if timeout == nil {
			timeout = new(int32)
		}
		if at := c.LastTransitionTime.Add(time.Duration(*timeout) * time.Second); why == "" || at.Before(first) {
			first, why = at, text
		}
	}
	for _, want := range checks.UnhealthyNodeConditions {
		c := have.Get(clusterv1.MachineNodeReadyCondition)
		if string(want.Type) == "Ready" && c != nil && string(c.Status) == string(want.Status) && isNodeReason(c.Reason) {
			under(c, want.TimeoutSeconds, fmt.Sprintf("Ready of its Node is %s", c.Status))
		}
	}
	for _, want := range checks.UnhealthyMachineConditions {
		if c := have.Get(want.Type); c != nil && c.Status == want.Status {
			under(c, want.TimeoutSeconds, fmt.Sprintf("%s is %s", c.Type, c.Status))
		}
	}
	return first, why
}

// isNodeReason reports whether a reason of NodeReady was derived from an existing Node.
func isNodeReason(reason string) bool {
	return slices.Contains([]string{clusterv1.MachineNodeReadyReason, clusterv1.MachineNodeNotReadyReason, clusterv1.MachineNodeReadyUnknownReason}, reason)
}
