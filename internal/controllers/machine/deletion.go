package machine

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
)

const (
	// defaultNodeDeletionTimeout is how long the Machine tries to delete its Node (MD-15).
	defaultNodeDeletionTimeout = 10 * time.Second
	// staleDeletion is how old a deletion is when it is worth a word (MA-22).
	staleDeletion = 15 * time.Minute
)

// decideDeletion removes what belongs to the Machine, one stage after the other
// (MD-14, MD-15, MD-16). The stages before the infrastructure's (hooks, drain,
// volumes) put themselves in front of the list.
func decideDeletion(s Snapshot) loop.Plan {
	var p loop.Plan
	for _, stage := range []func(Snapshot, *loop.Plan){deleteInfrastructure, deleteBootstrap, deleteNode} {
		stage(s, &p)
		if !p.Idle() {
			break
		}
	}
	if !p.Idle() {
		p.RecheckIn(staleDeletion - s.Now.Sub(s.Machine.DeletionTimestamp.Time))
	}
	return p
}

func deleteInfrastructure(s Snapshot, p *loop.Plan) {
	deleteLink(s.infra(), p, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
}

func deleteBootstrap(s Snapshot, p *loop.Plan) {
	deleteLink(s.bootstrap(), p, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason)
}

func deleteLink(l link, p *loop.Plan, reason string) {
	switch {
	case l.problem != "":
		p.WaitFor(reason, "%s", l.problem)
		p.RecheckIn(missingRecheck)
	case l.object != nil:
		if l.object.GetDeletionTimestamp().IsZero() {
			p.Do(DeleteReference{What: l.what, Kind: l.ref.Kind, Name: l.ref.Name})
		}
		p.WaitFor(reason, "%s %s still exists", l.ref.Kind, l.ref.Name)
	}
}

// deleteNode deletes the Node, at least once, and until the timeout (MD-15). That
// it was tried in an earlier pass is read from the Deleting condition.
func deleteNode(s Snapshot, p *loop.Plan) {
	if skipsNode(s) {
		return
	}
	left, forever := nodeDeletionLeft(s)
	if s.Node.Down {
		if left > 0 || forever {
			p.WaitFor(clusterv1.MachineDeletingDeletingNodeReason, "Node %s cannot be deleted while the workload cluster does not answer", s.Machine.Status.NodeRef.Name)
			p.RecheckIn(left)
		}
		return
	}
	if s.Node.Item == nil || left <= 0 && !forever && triedNode(s) {
		return
	}
	p.Do(DeleteNode{Node: s.Node.Item.Name})
	p.WaitFor(clusterv1.MachineDeletingDeletingNodeReason, "Node %s still exists", s.Node.Item.Name)
	p.RecheckIn(left)
}

func triedNode(s Snapshot) bool {
	c := condition.Set(s.Machine.Status.Conditions).Get(clusterv1.MachineDeletingCondition)
	return c != nil && c.Reason == clusterv1.MachineDeletingDeletingNodeReason
}

// skipsNode reports whether the Node is nobody's business any more (MD-01): it
// goes with its cluster, was never found, or there is nobody left to ask.
func skipsNode(s Snapshot) bool {
	known := s.Machine.Status.NodeRef.IsDefined() || s.Node.Item != nil
	return s.Cluster == nil || !s.Cluster.DeletionTimestamp.IsZero() || s.ControlPlane.Deleting || !known ||
		s.ControlPlane.Others == 0 && !s.ControlPlane.External
}

// nodeDeletionLeft is the time until the Node is given up, counted from the
// Machine's deletion, and whether it never is.
func nodeDeletionLeft(s Snapshot) (left time.Duration, forever bool) {
	timeout := defaultNodeDeletionTimeout
	if seconds := s.Machine.Spec.Deletion.NodeDeletionTimeoutSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	return timeout - s.Now.Sub(s.Machine.DeletionTimestamp.Time), timeout == 0
}
