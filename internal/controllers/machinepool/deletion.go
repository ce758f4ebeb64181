package machinepool

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// defaultNodeDeletionTimeout is the default time limit for deleting the Nodes of a pool.
const defaultNodeDeletionTimeout = 10 * time.Second

// Stages of the deletion, in their order.
const (
	infrastructureStage = iota + 1
	machineStage
	bootstrapStage
	nodeStage
	deletionOver
)

// decideDeletion is the part of [decide] for a pool that is being deleted. It deletes the objects of the pool and waits
// until they are gone: infrastructure and Machines, then the bootstrap config, then the Nodes.
func decideDeletion(s snapshot) (p reconciler.Plan) {
	for _, step := range []struct {
		stage  int
		reason string
		plan   func(snapshot, *reconciler.Plan)
	}{
		{infrastructureStage, waitingForInfrastructure, deleteInfrastructure},
		{machineStage, waitingForMachines, deleteMachines},
		{bootstrapStage, waitingForBootstrap, func(s snapshot, p *reconciler.Plan) { s.bootstrap().Delete(p, waitingForBootstrap) }},
		{nodeStage, deletingNodes, deleteNodes},
	} {
		if step.plan(s, &p); !p.Idle() {
			p.Enter(step.stage, step.reason)
			return p
		}
	}
	p.Enter(deletionOver, clusterv1.DeletionCompletedReason)
	return p
}

// deleteInfrastructure deletes the infrastructure and, at the same time, the Machines.
func deleteInfrastructure(s snapshot, p *reconciler.Plan) {
	if s.infra().Delete(p, waitingForInfrastructure); !p.Idle() {
		deleteMachines(s, p)
	}
}

func deleteMachines(s snapshot, p *reconciler.Plan) {
	for _, m := range s.Machines {
		if m.DeletionTimestamp.IsZero() {
			p.Do(deleteMachine{Name: m.Name, Why: "the pool is deleted"})
		} else {
			decideTimeouts(s, m, p)
		}
	}
	if len(s.Machines) == 0 {
		return
	}
	wait := p.WaitFor(waitingForMachines, "Waiting for the Machines of the pool to be deleted: %s%s", machineNames(s.Machines), heldMachines(s))
	for _, m := range s.Machines {
		wait.For("Machine", m.Name)
	}
	wait.ToChange("")
}

// heldMachines returns a message with the foreign finalizers that block the deletion of Machines.
func heldMachines(s snapshot) string {
	machines := make([]metav1.Object, 0, len(s.Machines))
	for i := range s.Machines {
		machines = append(machines, &s.Machines[i])
	}
	return condition.ForeignFinalizersText(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), machines...)
}

// deleteNodes deletes the Nodes until the timeout has passed. It does nothing if the cluster is deleted too,
// and cannot delete Nodes without a connection.
func deleteNodes(s snapshot, p *reconciler.Plan) {
	if s.Cluster == nil || !s.Cluster.DeletionTimestamp.IsZero() {
		return
	}
	left, forever := nodeDeletionLeft(s)
	if left <= 0 && !forever {
		return
	}
	if !s.Nodes.Known {
		if ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false) && len(s.Pool.Status.NodeRefs) > 0 {
			p.WaitFor(deletingNodes, "Nodes of the pool cannot be deleted: %s", s.Nodes.Problem).For(clusterv1.ClusterKind, s.Pool.Spec.ClusterName).ForTime()
			p.RecheckIn(left)
		}
		return
	}
	for _, id := range sortedIDs(s) {
		node := s.Nodes.Items[id]
		p.Do(deleteNode{Node: node.Name, UID: node.UID, Why: "the pool is deleted"})
	}
	retire(s, p, "the pool is deleted")
}

// nodeDeletionLeft returns the time left for deleting the Nodes, counted from the deletion of the pool, and whether
// there is no limit.
func nodeDeletionLeft(s snapshot) (time.Duration, bool) {
	timeout := defaultNodeDeletionTimeout
	if seconds := s.Pool.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	return timeout - s.Now.Sub(s.Pool.DeletionTimestamp.Time), timeout == 0
}

func machineNames(machines []clusterv1.Machine) string {
	names := make([]string, 0, len(machines))
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return condition.Names(names)
}
