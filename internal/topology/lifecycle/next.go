package lifecycle

import (
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/version"
)

// recheckDelay is the delay before the next decision if no event leads to one.
const recheckDelay = time.Second

// Next decides which changes to a Cluster with a topology are permitted now. The topology controller calls it in each
// reconciliation, and again after each hook that it has called for the decision. The package documentation has the
// rules.
func Next(f Input) Decision {
	d := &decision{Input: f, pending: pendingOf(f.Cluster), step: f.Cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]}
	d.target, d.current = f.Cluster.Spec.Topology.Version, f.Cluster.Spec.Topology.Version
	if f.ControlPlane != nil && f.ControlPlane.Version != "" {
		d.current = f.ControlPlane.Version
	}
	if d.isCorrected() {
		d.corrected, d.current = true, f.ControlPlane.Running
	}
	switch {
	case !f.Cluster.DeletionTimestamp.IsZero():
		return d.deletion()
	case !d.creation():
		d.result.Suspended = true
	default:
		d.initialized()
		d.sequence()
		d.workers()
		d.upgraded()
	}
	return d.conclude()
}

// decision is a decision that is being computed. The steps of [Next] are its methods in next.go, sequence.go,
// workers.go and condition.go.
type decision struct {
	Input
	// current is the version of the control plane, target the version of the topology.
	current, target string
	// pending and step are the desired values of the annotations.
	pending hookSet
	step    string
	// recorded means that a hook with handlers did not block; this has to be written before another hook is called.
	recorded bool
	// begun means that the upgrade has started, because BeforeClusterUpgrade did not block.
	begun bool
	route UpgradePlan
	// unplanned means that there is no plan, so that no version may change.
	unplanned bool
	// granted is the new version of the control plane; empty if its version does not change.
	granted string
	// workersMay means that workers may get the version of the control plane.
	workersMay bool
	// corrected means that a user has replaced a version that the control plane has in its spec but never completely
	// ran.
	corrected bool
	// rolling holds the workers whose rollout has to complete before an upgrade starts.
	rolling []Worker
	// finished means that the sequence is complete.
	finished bool
	// problems are messages about failures for users.
	problems []string
	states   []workerState
	result   Decision
}

// allows reports whether a hook does not block. If it blocks or its result is not known yet, this is recorded in the
// decision.
func (d *decision) allows(action string, q HookCall) bool {
	if !d.RuntimeSDK {
		return true
	}
	answer, answered := d.Results[q.Hook]
	switch {
	case !answered && d.recorded: // the write that records it triggers the next decision
		d.result.KeepsCondition = true
	case !answered:
		d.result.Calls = append(d.result.Calls, q)
	case answer.Problem != nil:
		d.result.Failed = append(d.result.Failed, answer.Problem)
		d.problems = append(d.problems, fmt.Sprintf("Hook %s failed: %s%s", q.Hook, fault.UserMessage(answer.Problem), retried(answer.Problem)))
	case answer.RetryAfter > 0:
		d.result.KeepsCondition = true
		d.recheckIn(answer.RetryAfter)
	case len(answer.Blocking) > 0:
		d.result.Blocking = append(d.result.Blocking, Blocked{Hook: q.Hook, Action: action, By: answer.Blocking})
		for _, b := range answer.Blocking {
			d.recheckIn(b.RetryAfter)
		}
	default:
		if len(answer.Handlers) > 0 && q.Hook != GenerateUpgradePlan {
			d.result.Released = append(d.result.Released, Released{Hook: q.Hook, Handlers: answer.Handlers})
		}
		return true
	}
	return false
}

// retried returns a suffix for a failure that is retried, or an empty string if a user has to correct it.
func retried(err error) string {
	if fault.KindOf(err) == fault.Invalid {
		return ""
	}
	return "; retrying"
}

// allowsAndRecords is like allows, for hooks of the sequence: if the hook has handlers and does not block, this is
// written before the next hook is called.
func (d *decision) allowsAndRecords(action string, q HookCall) bool {
	if !d.allows(action, q) {
		return false
	}
	d.recorded = d.recorded || d.RuntimeSDK && len(d.Results[q.Hook].Handlers) > 0
	return true
}

func (d *decision) recheckIn(after time.Duration) {
	if after > 0 && (d.result.Recheck == 0 || after < d.result.Recheck) {
		d.result.Recheck = after
	}
}

// creation reports whether the topology exists or may be created. Once BeforeClusterCreate has not blocked,
// AfterControlPlaneInitialized is pending.
func (d *decision) creation() bool {
	spec := d.Cluster.Spec
	if spec.InfrastructureRef.IsDefined() || spec.ControlPlaneRef.IsDefined() || !d.RuntimeSDK || d.pending[AfterControlPlaneInitialized] {
		return true
	}
	if !d.allowsAndRecords("creation of the topology", HookCall{Hook: BeforeClusterCreate}) {
		return false
	}
	d.pending.add(AfterControlPlaneInitialized)
	return true
}

// initialized calls AfterControlPlaneInitialized when the control plane is initialized. Its result does not affect the
// rest of the decision.
func (d *decision) initialized() {
	initialized := condition.Set(d.Cluster.Status.Conditions).IsTrue(clusterv1.ClusterControlPlaneInitializedCondition)
	if !d.pending[AfterControlPlaneInitialized] || !initialized {
		return
	}
	if d.allows("", HookCall{Hook: AfterControlPlaneInitialized}) {
		d.pending.remove(AfterControlPlaneInitialized)
	}
}

// upgraded calls AfterClusterUpgrade when the upgrade is complete, and removes the upgrade annotations when the hook
// does not block.
func (d *decision) upgraded() {
	if d.finished && d.pending[AfterClusterUpgrade] {
		if d.allows("next upgrade", HookCall{Hook: AfterClusterUpgrade, To: d.target}) {
			d.pending.remove(AfterClusterUpgrade)
		}
	}
	d.begun = d.begun && (d.pending[AfterClusterUpgrade] || !d.RuntimeSDK && !d.finished)
	switch {
	case !d.begun:
		d.step = ""
	case d.granted != "":
		d.step = d.granted
	case !d.unplanned: // without a plan it is unknown whether to resume the recorded step
		d.step = d.current
	}
}

// deletion calls BeforeClusterDelete once; the Cluster controller waits for the annotation.
func (d *decision) deletion() Decision {
	d.result.Suspended = true
	d.result.Reason, d.result.Message = clusterv1.ClusterTopologyReconciledDeletingReason, "Cluster is deleting"
	if _, allowed := d.Cluster.Annotations[runtimev1.OkToDeleteAnnotation]; allowed || !d.RuntimeSDK {
		return d.result
	}
	if d.allows("deletion", HookCall{Hook: BeforeClusterDelete}) {
		empty := ""
		d.result.Annotations = map[string]*string{runtimev1.OkToDeleteAnnotation: &empty}
		return d.result
	}
	if len(d.result.Failed) > 0 {
		d.result.Reason, d.result.Message = clusterv1.ClusterTopologyReconciledFailedReason, bullets(d.problems)
	} else if len(d.result.Blocking) > 0 {
		d.result.Message += ". " + blockingLine(d.result.Blocking)
	}
	return d.result
}

// conclude completes the decision.
func (d *decision) conclude() Decision {
	if len(d.result.Calls) > 0 {
		return Decision{Calls: d.result.Calls}
	}
	d.result.Annotations = changes(d.Cluster, d.pending, d.step)
	if d.result.KeepsCondition && len(d.result.Annotations) == 0 {
		d.recheckIn(recheckDelay)
	}
	d.result.Plan = d.route
	if d.granted != "" {
		d.result.Plan.ControlPlane = d.route.ControlPlane[1:]
	}
	d.result.ControlPlane = Part{Version: d.current, Frozen: d.granted == "" && (d.unplanned || len(d.route.ControlPlane) > 0)}
	if d.granted != "" {
		d.result.ControlPlane.Version = d.granted
	}
	d.result.Reason, d.result.Message = d.describe()
	return d.result
}

// isControlPlaneStable reports whether the control plane runs the version in its spec.
func (d *decision) isControlPlaneStable() bool {
	cp := d.ControlPlane
	return cp != nil && (cp.Version == "" || cp.Running != "" && !behind(cp.Running, cp.Version))
}

// isCorrected reports whether a user has turned off the version check and changed a version that the control plane does
// not reach to one that is not older than the version it runs.
func (d *decision) isCorrected() bool {
	cp := d.ControlPlane
	_, unchecked := d.Cluster.Annotations[clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation]
	if !unchecked || cp == nil || cp.Version == "" || cp.Running == "" || d.isControlPlaneStable() || isSameVersion(cp.Version, d.target) {
		return false
	}
	running, err := version.Parse(cp.Running)
	target, invalid := version.Parse(d.target)
	return err == nil && invalid == nil && target.Version.GTE(running.Version)
}

// isProvisioning reports whether the control plane has never run any version; in this case its workers are created
// together with it.
func (d *decision) isProvisioning() bool {
	return d.ControlPlane == nil || d.ControlPlane.Version != "" && d.ControlPlane.Running == ""
}
