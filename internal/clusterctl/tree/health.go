package tree

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

// Remediation is what a MachineHealthCheck does about a Machine when the time of one of its checks is over.
type Remediation struct {
	HealthCheck string `json:"healthCheck"`
	// At is when the time is over.
	At metav1.Time `json:"at"`
	// Because of what the Machine is found unhealthy.
	Because string `json:"because"`
	// Held is why it is not remediated all the same; empty: it is.
	Held string `json:"held,omitempty"`
}

// text says it in a sentence, which at no time (zero) is the one of all times.
func (r Remediation) text(now time.Time) string {
	switch left := r.At.Sub(now); {
	case r.Held != "":
		return fmt.Sprintf("MachineHealthCheck %s does not remediate it: %s", r.HealthCheck, r.Held)
	case now.IsZero():
		return fmt.Sprintf("MachineHealthCheck %s remediates it: %s", r.HealthCheck, r.Because)
	case left <= 0:
		return fmt.Sprintf("MachineHealthCheck %s is about to remediate it: %s", r.HealthCheck, r.Because)
	default:
		return fmt.Sprintf("MachineHealthCheck %s remediates it in %s: %s", r.HealthCheck, duration.HumanDuration(left), r.Because)
	}
}

// remediation is that of the Machine by the health check that comes first, while the time of one of its checks runs. It follows
// from what is in the API, where no field has it. Conditions of the Node other than Ready are not there.
func (b builder) remediation(m *clusterv1.Machine) (first *Remediation) {
	if !m.DeletionTimestamp.IsZero() || !b.judges(m) {
		return nil
	}
	for i := range b.Checks {
		check := &b.Checks[i]
		if !selects(check, m) {
			continue
		}
		at, why := deadline(check.Spec.Checks, m)
		if why == "" || first != nil && !at.Before(first.At.Time) {
			continue
		}
		first = &Remediation{HealthCheck: check.Name, At: metav1.NewTime(at), Because: why}
		if set := condition.Set(check.Status.Conditions); set.IsFalse(clusterv1.MachineHealthCheckRemediationAllowedCondition) {
			first.Held = set.Get(clusterv1.MachineHealthCheckRemediationAllowedCondition).Message
		}
	}
	return first
}

// judges reports whether Machines of the cluster are judged now: workers once the control plane is initialized, and none while the
// cluster is paused or its infrastructure is not ready any more.
func (b builder) judges(m *clusterv1.Machine) bool {
	c := b.Cluster
	if c.Spec.Paused != nil && *c.Spec.Paused || condition.Set(c.Status.Conditions).IsFalse(clusterv1.ClusterInfrastructureReadyCondition) {
		return false
	}
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	reached := c.Status.Initialization.ControlPlaneInitialized
	return controlPlane || reached != nil && *reached
}

// selects reports whether the check is about the Machine.
func selects(check *clusterv1.MachineHealthCheck, m *clusterv1.Machine) bool {
	for _, mark := range []string{clusterv1.MachineSkipRemediationAnnotation, clusterv1.PausedAnnotation} {
		if _, marked := m.Annotations[mark]; marked {
			return false
		}
	}
	_, paused := check.Annotations[clusterv1.PausedAnnotation]
	selector, err := metav1.LabelSelectorAsSelector(&check.Spec.Selector)
	return !paused && err == nil && !selector.Empty() && selector.Matches(labels.Set(m.Labels))
}

// deadline is when the first of the checks that are under way finds the Machine unhealthy, and why; empty: none is under way.
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
		if string(want.Type) == "Ready" && c != nil && string(c.Status) == string(want.Status) && ofNode(c.Reason) {
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

// ofNode reports whether a reason of NodeReady is one of a Node that could be read.
func ofNode(reason string) bool {
	return slices.Contains([]string{clusterv1.MachineNodeReadyReason, clusterv1.MachineNodeNotReadyReason, clusterv1.MachineNodeReadyUnknownReason}, reason)
}
