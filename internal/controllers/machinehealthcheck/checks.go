package machinehealthcheck

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
)

// checkResult is the result of the checks of one Machine. The checks themselves are in this file; decide.go decides
// which conditions and remediations follow from the results.
type checkResult struct {
	// reason is the highest-ranked reason of the failed checks, or empty if no check failed.
	reason string
	// problems lists all problems in the order in which they were found.
	problems []string
	// next is the time until a pending check may fail, or zero if none is pending.
	next time.Duration
}

// unhealthy reports whether a check failed. decide.go sets the conditions of the Machine accordingly.
func (f *checkResult) unhealthy() bool { return f.reason != "" }

// fail adds a problem. The highest-ranked reason is retained. The text becomes part of a condition, so it must not
// contain a value that changes with time.
func (f *checkResult) fail(reason, problem string, args ...any) {
	if f.reason == "" || rank(reason) < rank(f.reason) {
		f.reason = reason
	}
	if text := fmt.Sprintf(problem, args...); !slices.Contains(f.problems, text) {
		f.problems = append(f.problems, text)
	}
}

// until adds a check that fails at the deadline, and reports whether the deadline has passed.
func (f *checkResult) until(now, deadline time.Time) bool {
	left := deadline.Sub(now)
	if left <= 0 {
		return true
	}
	f.wait(left)
	return false
}

func (f *checkResult) wait(d time.Duration) {
	if d > 0 && (f.next == 0 || d < f.next) {
		f.next = d
	}
}

// rank orders the reasons: a user's request first, then the Machine, then the Node.
func rank(reason string) int {
	return slices.Index([]string{
		clusterv1.MachineHealthCheckHasRemediateAnnotationReason, clusterv1.MachineHealthCheckUnhealthyMachineReason,
		clusterv1.MachineHealthCheckNodeDeletedReason, clusterv1.MachineHealthCheckNodeStartupTimeoutReason,
		clusterv1.MachineHealthCheckUnhealthyNodeReason,
	}, reason)
}

// message returns the condition message with all problems on one line. The condition HealthCheckSucceeded of the
// Machine shows it.
func (f *checkResult) message() string {
	return "Health check failed: " + strings.Join(f.problems, "; ")
}

// merge combines the results of several health checks for one Machine. decide.go calls it.
func merge(findings ...checkResult) checkResult {
	var out checkResult
	for _, f := range findings {
		for _, problem := range f.problems {
			out.fail(f.reason, "%s", problem)
		}
		out.wait(f.next)
	}
	return out
}

// examine runs the checks of one health check on one Machine. It is called in each reconciliation, for the health check
// itself and for each other one that selects the Machine. Cluster API defines the checks and their reasons:
//
//	annotation remediate-machine                   always
//	conditions of the Machine   ┐
//	the Node appears in time    ├ workers: once the control plane is initialized and the infrastructure is provisioned;
//	the Node exists             │ control plane Machines: always
//	conditions of the Node      ┘
//
// While the infrastructure is not ready after it was provisioned, no Machine is examined ([snapshot.outage]).
func examine(s snapshot, checks clusterv1.MachineHealthCheckChecks, t target) checkResult {
	var f checkResult
	if _, marked := t.Machine.Annotations[clusterv1.RemediateMachineAnnotation]; marked {
		f.fail(clusterv1.MachineHealthCheckHasRemediateAnnotationReason, "the annotation %s requests remediation", clusterv1.RemediateMachineAnnotation)
	}
	if isTooEarly(s, t.Machine) {
		return f
	}
	checkMachine(s.Now, checks.UnhealthyMachineConditions, t.Machine, &f)
	switch {
	case t.Machine.Status.NodeRef.Name == "":
		checkStartup(s, checks.NodeStartupTimeoutSeconds, t, &f)
	case !t.NodeRead:
	case t.Node == nil:
		f.fail(clusterv1.MachineHealthCheckNodeDeletedReason, "Node %s has been deleted", t.Machine.Status.NodeRef.Name)
	default:
		checkNode(s.Now, checks.UnhealthyNodeConditions, t.Node, &f)
	}
	return f
}

// isTooEarly reports whether it is too early to check the Machine.
func isTooEarly(s snapshot, m *clusterv1.Machine) bool {
	if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; controlPlane {
		return false
	}
	reached := s.Cluster.Status.Initialization
	return !ptr.Deref(reached.ControlPlaneInitialized, false) || !ptr.Deref(reached.InfrastructureProvisioned, false)
}

func checkMachine(now time.Time, unhealthy []clusterv1.UnhealthyMachineCondition, m *clusterv1.Machine, f *checkResult) {
	for _, want := range unhealthy {
		have := condition.Set(m.Status.Conditions).Get(want.Type)
		if have == nil || have.Status != want.Status {
			continue
		}
		if timeout := seconds(want.TimeoutSeconds); f.until(now, have.LastTransitionTime.Add(timeout)) {
			f.fail(clusterv1.MachineHealthCheckUnhealthyMachineReason,
				"condition %s of the Machine has been %s for more than %s", want.Type, want.Status, timeout)
		}
	}
}

func checkNode(now time.Time, unhealthy []clusterv1.UnhealthyNodeCondition, node *corev1.Node, f *checkResult) {
	for _, want := range unhealthy {
		for _, have := range node.Status.Conditions {
			if have.Type != want.Type || have.Status != want.Status {
				continue
			}
			if timeout := seconds(want.TimeoutSeconds); f.until(now, have.LastTransitionTime.Add(timeout)) {
				f.fail(clusterv1.MachineHealthCheckUnhealthyNodeReason,
					"condition %s of the Node has been %s for more than %s", want.Type, want.Status, timeout)
			}
		}
	}
}

// checkStartup checks that the Node appears in time. The check starts when the cluster's infrastructure is
// provisioned. If the Machine's own infrastructure is not ready, the timeout doubles with every consecutive
// replacement for the same reason.
func checkStartup(s snapshot, timeoutSeconds *int32, t target, f *checkResult) {
	timeout := time.Duration(clusterv1.DefaultNodeStartupTimeoutSeconds) * time.Second
	if timeoutSeconds != nil {
		timeout = seconds(timeoutSeconds)
	}
	if timeout == 0 || !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false) {
		return
	}
	provisioned := isProvisioned(t.Machine)
	if !provisioned {
		timeout <<= t.Setbacks
	}
	switch {
	case !f.until(s.Now, startupBase(s.Cluster, t.Machine).Add(timeout)):
	case provisioned:
		f.fail(clusterv1.MachineHealthCheckNodeStartupTimeoutReason, "no Node appeared within %s", timeout)
	default:
		f.fail(clusterv1.MachineHealthCheckNodeStartupTimeoutReason, "no Node appeared within %s: its infrastructure is not ready", timeout)
	}
}

// startupBase returns the time at which the last prerequisite of the Node became available.
func startupBase(cluster *clusterv1.Cluster, m *clusterv1.Machine) time.Time {
	base := m.CreationTimestamp.Time
	for _, t := range []string{clusterv1.ClusterControlPlaneInitializedCondition, clusterv1.ClusterInfrastructureReadyCondition} {
		base = laterOf(base, cluster.Status.Conditions, t)
	}
	return laterOf(base, m.Status.Conditions, clusterv1.MachineInfrastructureReadyCondition)
}

// laterOf returns the time since which the condition is True if that is later than base, otherwise base.
func laterOf(base time.Time, set condition.Set, conditionType string) time.Time {
	if set.IsTrue(conditionType) {
		if since := set.Get(conditionType).LastTransitionTime.Time; since.After(base) {
			return since
		}
	}
	return base
}

func seconds(n *int32) time.Duration {
	if n == nil {
		return 0
	}
	return time.Duration(*n) * time.Second
}
