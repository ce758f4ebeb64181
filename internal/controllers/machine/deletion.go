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
	"github.com/slipwayhq/slipway/internal/loop"
)

const (
	// defaultNodeDeletionTimeout is how long the Machine tries to delete its Node.
	defaultNodeDeletionTimeout = 10 * time.Second
	// staleDrain is how old a drain is when the summary says what delays it.
	staleDrain = 5 * time.Minute
)

// stage is how far the deletion of a Machine has come.
type stage int

const (
	preDrainHooks stage = iota
	draining
	detaching
	preTerminateHooks
	removing
	deletionOver
)

// decideDeletion removes what belongs to the Machine, one stage after the other.
//
//	pre-drain hooks       until their annotations are gone
//	drain                 cordon, evict; until no Pod is left that has to leave
//	volumes               until they are detached
//	pre-terminate hooks   until their annotations are gone
//	provider ID           note it, before the one who knows it goes
//	infrastructure        delete, until it is gone
//	bootstrap             delete, until it is gone
//	Node                  delete, until it is gone or given up
//	                      then the finalizer goes
//
// The stages that need the Node are skipped where no controller could do anything for it.
func decideDeletion(s Snapshot) loop.Plan {
	p, _ := planDeletion(s)
	if !p.Idle() {
		p.RecheckIn(condition.LingerAfter - s.Now.Sub(s.Machine.DeletionTimestamp.Time))
		switch { // what ends without an event
		case s.Node.Busy > 0:
			p.RecheckIn(s.Node.Busy)
		case s.Node.Down && s.Connection.Good():
			p.RecheckIn(fillingRecheck)
		}
	}
	return p
}

// planDeletion returns the plan of the first stage that is not over, and which it is.
func planDeletion(s Snapshot) (p loop.Plan, at stage) {
	for _, step := range []struct {
		stage
		plan func(Snapshot, *loop.Plan)
	}{
		{preDrainHooks, waitForHooks(clusterv1.PreDrainDeleteHookAnnotationPrefix, clusterv1.MachineDeletingWaitingForPreDrainHookReason)},
		{draining, drainNode}, {detaching, waitForVolumes},
		{preTerminateHooks, waitForHooks(clusterv1.PreTerminateDeleteHookAnnotationPrefix, clusterv1.MachineDeletingWaitingForPreTerminateHookReason)},
		{removing, noteProviderID}, {removing, deleteInfrastructure},
		{removing, deleteBootstrap}, {removing, deleteNode},
	} {
		if step.plan(s, &p); !p.Idle() {
			return p, step.stage
		}
	}
	return p, deletionOver
}

// waitForHooks waits until no annotation with the prefix is left.
func waitForHooks(prefix, reason string) func(Snapshot, *loop.Plan) {
	return func(s Snapshot, p *loop.Plan) {
		if h := hooks(s, prefix); len(h) > 0 {
			p.WaitFor(reason, "Waiting for the owners of the annotations %s to remove them", strings.Join(h, ", ")).
				For("Machine", s.Machine.Name).ToChange("metadata.annotations")
		}
	}
}

// hooks returns the annotations with the prefix, sorted.
func hooks(s Snapshot, prefix string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(s.Machine.Annotations)) {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	return out
}

// noteProviderID makes the Node known that a Machine may have got, or may still get, while its deletion began: nothing else
// leads to it when the infrastructure is gone.
func noteProviderID(s Snapshot, p *loop.Plan) {
	if skipsNodeDeletion(s) || s.Machine.Spec.ProviderID != "" {
		return
	}
	if id := s.Infra.ProviderID.Or(""); id != "" {
		p.Do(NoteProviderID{ID: id})
	}
}

func deleteInfrastructure(s Snapshot, p *loop.Plan) {
	s.infra().Delete(p, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
}

func deleteBootstrap(s Snapshot, p *loop.Plan) {
	s.bootstrap().Delete(p, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason)
}

// deleteNode deletes the Node, at least once, and until the timeout. That it was tried before is read from the condition Deleting.
func deleteNode(s Snapshot, p *loop.Plan) {
	if skipsNodeDeletion(s) || !hadNode(s) && !(s.Node.Down && s.Machine.Spec.ProviderID != "") {
		return
	}
	left, forever := nodeDeletionLeft(s)
	switch {
	case s.Node.Busy > 0 && s.Connection.Good(): // its turn comes, and the Node would be left behind
		p.WaitFor(clusterv1.MachineDeletingReason, "Waiting for a turn to delete %s", theNode(s)).
			For(clusterv1.ClusterKind, s.Machine.Spec.ClusterName).ForTime()
		return
	case s.Node.Down:
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
	p.Do(DeleteNode{Node: s.Node.Item.Name})
	held := loop.Held(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), s.Node.Item)
	if held != "" && forever {
		held += "; a spec.deletion.nodeDeletionTimeoutSeconds above 0 ends the wait, too"
	}
	p.WaitFor(clusterv1.MachineDeletingDeletingNodeReason, "Waiting for Node %s to be deleted%s", s.Node.Item.Name, held).
		For("Node", s.Node.Item.Name).ToChange("")
	p.RecheckIn(left)
}

func hasTriedNodeDeletion(s Snapshot) bool {
	c := condition.Set(s.Machine.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	return c != nil && (c.Reason == clusterv1.MachineDeletingDeletingNodeReason || c.Reason == clusterv1.MachineDeletingDeletionCompletedReason)
}

// theNode names the Node of a workload cluster that does not answer.
func theNode(s Snapshot) string {
	if name := s.Machine.Status.NodeRef.Name; name != "" {
		return "Node " + name
	}
	return "The Node with provider ID " + s.Machine.Spec.ProviderID + ", if there is one,"
}

// skipsNodeStages reports whether nothing can be done for the Node any more: it goes with its cluster, or was never found.
func skipsNodeStages(s Snapshot) bool { return skipsNodeDeletion(s) || !hadNode(s) }

// hadNode reports whether there was a Node once.
func hadNode(s Snapshot) bool { return s.Machine.Status.NodeRef.IsDefined() || s.Node.Item != nil }

// skipsNodeDeletion reports whether a Node goes with its cluster, or no control plane is left that could remove it. A control plane that cannot be read
// may still be there.
func skipsNodeDeletion(s Snapshot) bool {
	return s.Cluster == nil || !s.Cluster.DeletionTimestamp.IsZero() || s.ControlPlane.Deleting ||
		s.ControlPlane.Others == 0 && !s.ControlPlane.External && !s.ControlPlane.Unreadable
}

// nodeDeletionLeft is the time until the Node is given up, counted from the Machine's deletion, and whether it never is.
func nodeDeletionLeft(s Snapshot) (left time.Duration, forever bool) {
	timeout := defaultNodeDeletionTimeout
	if seconds := s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	return timeout - s.Now.Sub(s.Machine.DeletionTimestamp.Time), timeout == 0
}

// begun says when the stages began, as it is written.
func begun(s Snapshot) clusterv1.MachineDeletionStatus {
	return *cmp.Or(s.Machine.Status.Deletion, &clusterv1.MachineDeletionStatus{})
}

// deletionStatus says when the stages began that have a beginning; what is said stays.
func deletionStatus(s Snapshot) *clusterv1.MachineDeletionStatus {
	if !deleting(s) {
		return s.Machine.Status.Deletion
	}
	out := begun(s)
	began := func(at *metav1.Time, is bool) {
		if is && at.IsZero() {
			*at = thisSecond(s)
		}
	}
	_, now := planDeletion(s)
	began(&out.WaitForPreDrainHookStartTime, now == preDrainHooks)
	began(&out.NodeDrainStartTime, now >= draining && drains(s) && (s.Node.Item != nil || s.Node.Down))
	began(&out.WaitForNodeVolumeDetachStartTime, now == detaching)
	began(&out.WaitForPreTerminateHookStartTime, now == preTerminateHooks)
	if out == (clusterv1.MachineDeletionStatus{}) {
		return nil
	}
	return &out
}
