package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reference"
)

// The actions of the controller. Each may be repeated. [decide] plans them, and act runs them.
type (
	// joinCluster sets the cluster label of the Machine, and makes the Cluster its owner if it has no other owner.
	joinCluster struct{ Cluster string }
	// copyFromProviders copies the results of bootstrap config and infrastructure machine to the spec.
	copyFromProviders struct{}
	// syncNode synchronizes labels, annotations and taints to the Node.
	syncNode struct{ Node string }
	// cordon marks the Node as unschedulable.
	cordon struct{ Node string }
	// evict evicts Pods of the Node.
	evict struct {
		Node string
		// Pods is the number of Pods to evict.
		Pods int
		// results are set when the action has run, for the report.
		results *drain.Results
	}
	// recordProviderID copies the provider ID from the infrastructure machine to the spec of a Machine that is being
	// deleted.
	recordProviderID struct{ ID string }
	// deleteWorkloadNode deletes the Node from the workload cluster.
	deleteWorkloadNode struct{ Node string }
)

func (a joinCluster) String() string { return "join Cluster " + a.Cluster }
func (a copyFromProviders) String() string {
	return "copy the results of bootstrap and infrastructure"
}
func (a syncNode) String() string {
	return fmt.Sprintf("sync labels, annotations and taints to Node %s", a.Node)
}
func (a cordon) String() string { return fmt.Sprintf("cordon Node %s: its Machine is deleted", a.Node) }
func (a evict) String() string {
	return fmt.Sprintf("evict %d Pods from Node %s: its Machine is deleted", a.Pods, a.Node)
}
func (a recordProviderID) String() string {
	return fmt.Sprintf("record the provider ID %s, with which its Node is found after the infrastructure is deleted", a.ID)
}
func (a deleteWorkloadNode) String() string {
	return fmt.Sprintf("delete Node %s: its Machine is deleted", a.Node)
}

// act runs one action. Package reconciler calls it for each action that [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	if handled, err := s.update().Act(ctx, c.writer, action); handled {
		return err
	}
	switch a := action.(type) {
	case joinCluster:
		return c.writer.Patch(ctx, s.Machine, func(o client.Object) { join(s, o) })
	case reference.SetOwner, reference.Delete:
		return reference.Act(ctx, c.writer, a, s.bootstrap(), s.infra())
	case copyFromProviders:
		return c.writer.Patch(ctx, s.Machine, func(o client.Object) { copyProviderFields(s, o.(*clusterv1.Machine)) })
	case syncNode:
		return c.syncNode(ctx, s)
	case cordon:
		return c.cordon(ctx, s)
	case evict:
		return c.evict(ctx, s, a)
	case recordProviderID:
		return c.writer.Patch(ctx, s.Machine, func(o client.Object) { o.(*clusterv1.Machine).Spec.ProviderID = a.ID })
	case deleteWorkloadNode:
		return c.deleteNode(ctx, s, a)
	}
	return reconciler.UnknownAction("machine", action)
}

// join sets the cluster label, and makes the Cluster the owner of a standalone Machine.
func join(s snapshot, o client.Object) {
	if standalone(s) {
		ownership.AddToCluster(o, s.Cluster)
		return
	}
	ownership.Label(o, clusterv1.ClusterNameLabel, s.Cluster.Name)
}

// syncNode patches the Node with its resourceVersion as a precondition, and only if the patch changes anything.
func (c *controller) syncNode(ctx context.Context, s snapshot) error {
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err != nil {
		return err
	}
	err = c.writer.WithClient(workload).Patch(ctx, s.Node.Item, func(o client.Object) { metadataOf(s).Sync(o.(*corev1.Node)) })
	return client.IgnoreNotFound(err)
}

func (c *controller) deleteNode(ctx context.Context, s snapshot, a deleteWorkloadNode) error {
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err != nil {
		return err
	}
	err = c.writer.WithClient(workload).DeleteAnyway(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Node, UID: s.Node.Item.UID}})
	if fault.KindOf(err) == fault.Conflict { // another Node with the same name
		return nil
	}
	return err
}
