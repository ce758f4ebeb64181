package machinepool

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reference"
)

// The actions of the controller. Each may be repeated. [decide] plans them, and act runs them.
type (
	// joinCluster sets the cluster label and the owner reference of the pool.
	joinCluster struct{ Cluster string }
	// copyFromProviders copies the results of bootstrap config and infrastructure to the spec.
	copyFromProviders struct{}
	// createMachine creates the Machine that represents an infrastructure machine.
	createMachine struct{ Name, Kind string }
	// adoptMachine makes the pool the controller of a Machine that has lost its owner.
	adoptMachine struct{ Machine string }
	// syncMachine updates a Machine to match the template and the version of its Node.
	syncMachine struct{ Machine string }
	// syncTimeouts updates the deletion timeouts of a Machine that is being deleted.
	syncTimeouts struct{ Machine string }
	// setUpToDate sets the UpToDate condition of a Machine.
	setUpToDate struct {
		Machine string
		Verdict condition.Result
	}
	// deleteMachine deletes a Machine of the pool.
	deleteMachine struct{ Name, Why string }
	// markNode annotates a Node with its pool, and synchronizes its labels and the uninitialized taint.
	markNode struct{ Node, ProviderID string }
	// deleteNode deletes a Node from the workload cluster if it still has the UID.
	deleteNode struct {
		Node string
		UID  types.UID
		Why  string
	}
)

// Independent marks actions that may run in parallel: a failure for one Machine does not affect the others. Package
// reconciler checks for this method.
func (createMachine) Independent() {}
func (adoptMachine) Independent()  {}
func (syncMachine) Independent()   {}
func (syncTimeouts) Independent()  {}
func (setUpToDate) Independent()   {}

func (a joinCluster) String() string { return "join Cluster " + a.Cluster }
func (a copyFromProviders) String() string {
	return "copy the results of bootstrap and infrastructure"
}
func (a createMachine) String() string {
	return fmt.Sprintf("create Machine %s for its %s", a.Name, a.Kind)
}
func (a adoptMachine) String() string {
	return fmt.Sprintf("adopt Machine %s: it has the labels of the pool, and no owner", a.Machine)
}
func (a syncMachine) String() string {
	return fmt.Sprintf("sync Machine %s: it differs from the template or its Node", a.Machine)
}
func (a syncTimeouts) String() string {
	return fmt.Sprintf("sync Machine %s: the timeouts of its deletion changed", a.Machine)
}
func (a setUpToDate) String() string {
	return fmt.Sprintf("set condition UpToDate of Machine %s to %s: %s", a.Machine, a.Verdict.Status, a.Verdict.Reason)
}
func (a deleteMachine) String() string { return fmt.Sprintf("delete Machine %s: %s", a.Name, a.Why) }
func (a markNode) String() string      { return fmt.Sprintf("mark Node %s as one of the pool", a.Node) }
func (a deleteNode) String() string    { return fmt.Sprintf("delete Node %s: %s", a.Node, a.Why) }

// act runs one action. Package reconciler calls it for each action that [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case joinCluster:
		return c.writer.Patch(ctx, s.Pool, func(o client.Object) { ownership.AddToCluster(o, s.Cluster) })
	case reference.SetOwner, reference.Delete:
		return reference.Act(ctx, c.writer, a, s.bootstrap(), s.infra())
	case copyFromProviders:
		return c.writer.Patch(ctx, s.Pool, func(o client.Object) { copyProviderFields(s, o.(*clusterv1.MachinePool)) })
	case createMachine:
		return c.createMachine(ctx, s, a)
	case adoptMachine:
		owner := *metav1.NewControllerRef(s.Pool, clusterv1.GroupVersion.WithKind("MachinePool"))
		return c.writer.Patch(ctx, machineOf(s, a.Machine), func(o client.Object) { ownership.AddOwner(o, owner) })
	case syncMachine:
		return c.syncMachine(ctx, s, a)
	case syncTimeouts:
		return c.writer.Patch(ctx, machineOf(s, a.Machine), func(o client.Object) {
			o.(*clusterv1.Machine).Spec.Deletion = deletionOf(s)
		})
	case setUpToDate:
		return c.setUpToDate(ctx, s, a)
	case deleteMachine:
		return c.writer.Delete(ctx, machineOf(s, a.Name))
	case markNode:
		return c.markNode(ctx, s, a)
	case deleteNode:
		return c.deleteNode(ctx, s, a)
	}
	return reconciler.UnknownAction("machinepool", action)
}

// setUpToDate applies the UpToDate condition of a Machine. The Machine controller sets all others.
func (c *controller) setUpToDate(ctx context.Context, s snapshot, a setUpToDate) error {
	m := machineOf(s, a.Machine)
	table := condition.Table[condition.Result]{{
		Type: clusterv1.MachineUpToDateCondition, Compute: func(v condition.Result) condition.Result { return v },
	}}
	conditions := table.Evaluate(a.Verdict, reconciler.EvaluateOptionsFor(m, s.Now))
	return c.writer.ApplyStatus(ctx, m, map[string]any{"conditions": conditions})
}

func (c *controller) markNode(ctx context.Context, s snapshot, a markNode) error {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	node := s.Nodes.Items[a.ProviderID]
	err = c.writer.WithClient(workload).Patch(ctx, &node, func(o client.Object) { mark(s, o.(*corev1.Node)) })
	return client.IgnoreNotFound(err)
}

func (c *controller) deleteNode(ctx context.Context, s snapshot, a deleteNode) error {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	err = c.writer.WithClient(workload).DeleteAnyway(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Node, UID: a.UID}})
	if fault.KindOf(err) == fault.Conflict { // another Node with the same name
		return nil
	}
	return err
}

func machineOf(s snapshot, name string) *clusterv1.Machine {
	for i := range s.Machines {
		if s.Machines[i].Name == name {
			return &s.Machines[i]
		}
	}
	return nil
}
