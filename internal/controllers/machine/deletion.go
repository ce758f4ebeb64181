package machine

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

const (
	// defaultNodeDeletionTimeout is the default time limit for deleting the Node.
	defaultNodeDeletionTimeout = 10 * time.Second
	// staleDrain is the duration of a drain after which the summary includes the causes of the delay.
	staleDrain = 5 * time.Minute
)

// Stages in the deletion of a Machine, in their order. Cluster API defines the order; the conditions and the status
// report the stage.
const (
	preDrainHooks = iota + 1
	draining
	detaching
	preTerminateHooks
	removing
	deletionOver
)

// decideDeletion is the part of [decide] for a Machine that is being deleted. It runs the deletion in stages.
//
//	pre-drain hooks       wait until their annotations are removed
//	drain                 cordon and evict, until no Pod is left to evict or to wait for
//	volumes               wait until they are detached
//	pre-terminate hooks   wait until their annotations are removed
//	provider ID           record it before the infrastructure machine is deleted
//	infrastructure        delete, until it is gone
//	bootstrap             delete, until it is gone
//	Node                  delete, until it is gone or the timeout has passed
//	                      then the finalizer is removed
//
// The stages that need the Node are skipped if the control plane is gone or being deleted, or no Node was ever
// found.
func decideDeletion(s snapshot) reconciler.Plan {
	p := planDeletion(s)
	if !p.Idle() {
		p.RecheckIn(condition.LingerAfter - s.Now.Sub(s.Machine.DeletionTimestamp.Time))
		switch { // changes without an event
		case s.Node.RetryAfter > 0:
			p.RecheckIn(s.Node.RetryAfter)
		case s.Node.Unreachable && s.Connection.IsHealthy():
			p.RecheckIn(fillingRecheck)
		}
	}
	return p
}

// planDeletion returns the plan for the first stage that is not complete. The reason of a stage is the reason of the
// Deleting condition.
func planDeletion(s snapshot) (p reconciler.Plan) {
	const infrastructure, bootstrap = clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason
	for _, step := range []struct {
		stage  int
		reason string
		plan   func(snapshot, *reconciler.Plan)
	}{
		{preDrainHooks, clusterv1.MachineDeletingWaitingForPreDrainHookReason, waitForPreDrainHooks},
		{draining, clusterv1.MachineDeletingDrainingNodeReason, drainNode},
		{detaching, clusterv1.MachineDeletingWaitingForVolumeDetachReason, waitForVolumes},
		{preTerminateHooks, clusterv1.MachineDeletingWaitingForPreTerminateHookReason, waitForPreTerminateHooks},
		{removing, infrastructure, noteProviderID}, {removing, infrastructure, deleteInfrastructure},
		{removing, bootstrap, deleteBootstrap},
		{removing, clusterv1.MachineDeletingReason, waitForTurn}, {removing, clusterv1.MachineDeletingDeletingNodeReason, deleteNode},
	} {
		if step.plan(s, &p); !p.Idle() {
			p.Enter(step.stage, step.reason)
			return p
		}
	}
	p.Enter(deletionOver, clusterv1.MachineDeletingDeletionCompletedReason)
	return p
}

func waitForPreDrainHooks(s snapshot, p *reconciler.Plan) {
	waitForHooks(s, p, clusterv1.PreDrainDeleteHookAnnotationPrefix, clusterv1.MachineDeletingWaitingForPreDrainHookReason)
}

func waitForPreTerminateHooks(s snapshot, p *reconciler.Plan) {
	waitForHooks(s, p, clusterv1.PreTerminateDeleteHookAnnotationPrefix, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
}

// waitForHooks waits until no annotation with the prefix is left.
func waitForHooks(s snapshot, p *reconciler.Plan, prefix, reason string) {
	if h := hooks(s, prefix); len(h) > 0 {
		p.WaitFor(reason, "Waiting for the owners of the annotations %s to remove them", strings.Join(h, ", ")).
			For("Machine", s.Machine.Name).ToChange("metadata.annotations")
	}
}

// hooks returns the sorted annotations with the prefix.
func hooks(s snapshot, prefix string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(s.Machine.Annotations)) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	return out
}

// noteProviderID records the provider ID if the Node may have joined, or may still join, while the deletion
// started. After the infrastructure machine is deleted, the Node could not be found otherwise.
func noteProviderID(s snapshot, p *reconciler.Plan) {
	if skipsNodeDeletion(s) || s.Machine.Spec.ProviderID != "" {
		return
	}
	if id := s.Infra.ProviderID.Or(""); id != "" {
		p.Do(recordProviderID{ID: id})
	}
}

func deleteInfrastructure(s snapshot, p *reconciler.Plan) {
	s.infra().Delete(p, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
}

func deleteBootstrap(s snapshot, p *reconciler.Plan) {
	s.bootstrap().Delete(p, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason)
}

// hasNodeToDelete reports whether the Machine may have a Node that has to be deleted.
func hasNodeToDelete(s snapshot) bool {
	return !skipsNodeDeletion(s) && (hadNode(s) || s.Node.Unreachable && s.Machine.Spec.ProviderID != "")
}

// waitForTurn waits until the Node can be deleted without exceeding the rate limit of the workload cluster. Giving up
// would leave the Node behind.
func waitForTurn(s snapshot, p *reconciler.Plan) {
	if hasNodeToDelete(s) && s.Node.RetryAfter > 0 && s.Connection.IsHealthy() {
		p.WaitFor(clusterv1.MachineDeletingReason, "Waiting for a turn to delete %s", theNode(s)).
			For(clusterv1.ClusterKind, s.Machine.Spec.ClusterName).ForTime()
	}
}

// deleteNode deletes the Node with at least one attempt, until the timeout. The Deleting condition records whether
// there was an attempt before.
func deleteNode(s snapshot, p *reconciler.Plan) {
	if !hasNodeToDelete(s) {
		return
	}
	left, forever := nodeDeletionLeft(s)
	if s.Node.Unreachable {
		if left > 0 || forever {
			p.WaitFor(clusterv1.MachineDeletingDeletingNodeReason, "%s cannot be deleted while the workload cluster does not answer", theNode(s)).
				For(clusterv1.ClusterKind, s.Machine.Spec.ClusterName).ToChange(connection)
			p.RecheckIn(left)
		}
		return
	}
	if s.Node.Item == nil || left <= 0 && !forever && hasTriedNodeDeletion(s) {
		return
	}
	p.Do(deleteWorkloadNode{Node: s.Node.Item.Name})
	held := condition.ForeignFinalizersText(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), s.Node.Item)
	if held != "" && forever {
		held += "; a spec.deletion.nodeDeletionTimeoutSeconds above 0 ends the wait, too"
	}
	p.WaitFor(clusterv1.MachineDeletingDeletingNodeReason, "Waiting for Node %s to be deleted%s", s.Node.Item.Name, held).
		For("Node", s.Node.Item.Name).ToChange("")
	p.RecheckIn(left)
}

func hasTriedNodeDeletion(s snapshot) bool {
	c := condition.Set(s.Machine.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	return c != nil && (c.Reason == clusterv1.MachineDeletingDeletingNodeReason || c.Reason == clusterv1.MachineDeletingDeletionCompletedReason)
}

// theNode describes the Node in an unreachable workload cluster.
func theNode(s snapshot) string {
	if name := s.Machine.Status.NodeRef.Name; name != "" {
		return "Node " + name
	}
	return "The Node with provider ID " + s.Machine.Spec.ProviderID + ", if there is one,"
}

// skipsNodeStages reports whether the stages that need the Node are skipped: the Node is removed with its cluster, or
// was never found. The drain and the wait for volumes (drain.go) both check it.
func skipsNodeStages(s snapshot) bool { return skipsNodeDeletion(s) || !hadNode(s) }

// hadNode reports whether the Machine has or had a Node.
func hadNode(s snapshot) bool { return s.Machine.Status.NodeRef.IsDefined() || s.Node.Item != nil }

// skipsNodeDeletion reports whether the Node is removed with its cluster, or no control plane is left that could
// remove it. An unreadable control plane counts as present.
func skipsNodeDeletion(s snapshot) bool {
	return s.Cluster == nil || !s.Cluster.DeletionTimestamp.IsZero() || s.ControlPlane.Deleting ||
		s.ControlPlane.Others == 0 && !s.ControlPlane.External && !s.ControlPlane.Unreadable
}

// nodeDeletionLeft returns the time left for deleting the Node, counted from the deletion of the Machine, and
// whether there is no limit.
func nodeDeletionLeft(s snapshot) (left time.Duration, forever bool) {
	timeout := defaultNodeDeletionTimeout
	if seconds := s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	return timeout - s.Now.Sub(s.Machine.DeletionTimestamp.Time), timeout == 0
}

// stageStartTimes returns the start times of the stages in the current status.
func stageStartTimes(s snapshot) clusterv1.MachineDeletionStatus {
	return *cmp.Or(s.Machine.Status.Deletion, &clusterv1.MachineDeletionStatus{})
}

// deletionStatus returns the deletion status with the start times of the stages. Existing times are never changed.
// [report] writes it, and the timeouts of the drain and of the volumes count from these times.
func deletionStatus(s snapshot, stage int) *clusterv1.MachineDeletionStatus {
	if !deleting(s) {
		return s.Machine.Status.Deletion
	}
	out := stageStartTimes(s)
	began := func(at *metav1.Time, is bool) {
		if is && at.IsZero() {
			*at = thisSecond(s)
		}
	}
	began(&out.WaitForPreDrainHookStartTime, stage == preDrainHooks)
	began(&out.NodeDrainStartTime, stage >= draining && needsDrain(s) && (s.Node.Item != nil || s.Node.Unreachable))
	began(&out.WaitForNodeVolumeDetachStartTime, stage == detaching)
	began(&out.WaitForPreTerminateHookStartTime, stage == preTerminateHooks)
	if out == (clusterv1.MachineDeletionStatus{}) {
		return nil
	}
	return &out
}
