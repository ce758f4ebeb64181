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
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/reference"
)

// The actions of the controller. Each may be repeated.
type (
	// Join sets the cluster label and the owner reference of the pool.
	Join struct{ Cluster string }
	// TakeOver copies the results of bootstrap config and infrastructure to the spec.
	TakeOver struct{}
	// CreateMachine creates the Machine that represents an infrastructure machine.
	CreateMachine struct{ Name, Kind string }
	// AdoptMachine makes the pool the controller of a Machine that has lost its owner.
	AdoptMachine struct{ Machine string }
	// SyncMachine updates a Machine to match the template and the version of its Node.
	SyncMachine struct{ Machine string }
	// SyncTimeouts updates the deletion timeouts of a Machine that is being deleted.
	SyncTimeouts struct{ Machine string }
	// SetUpToDate sets the UpToDate condition of a Machine.
	SetUpToDate struct {
		Machine string
		Verdict condition.Verdict
	}
	// DeleteMachine deletes a Machine of the pool.
	DeleteMachine struct{ Name, Why string }
	// MarkNode annotates a Node with its pool, and synchronizes its labels and the uninitialized taint.
	MarkNode struct{ Node, ProviderID string }
	// DeleteNode deletes a Node from the workload cluster if it still has the UID.
	DeleteNode struct {
		Node string
		UID  types.UID
		Why  string
	}
)

// Independent implements reconciler.Independent: a failure for one Machine does not affect the others.
func (CreateMachine) Independent() {}
func (AdoptMachine) Independent()  {}
func (SyncMachine) Independent()   {}
func (SyncTimeouts) Independent()  {}
func (SetUpToDate) Independent()   {}

func (a Join) String() string     { return "join Cluster " + a.Cluster }
func (a TakeOver) String() string { return "take over what bootstrap and infrastructure report" }
func (a CreateMachine) String() string {
	return fmt.Sprintf("create Machine %s for its %s", a.Name, a.Kind)
}
func (a AdoptMachine) String() string {
	return fmt.Sprintf("adopt Machine %s: it has the labels of the pool, and no owner", a.Machine)
}
func (a SyncMachine) String() string {
	return fmt.Sprintf("sync Machine %s: it is not what the template and its Node say", a.Machine)
}
func (a SyncTimeouts) String() string {
	return fmt.Sprintf("sync Machine %s: the timeouts of its deletion changed", a.Machine)
}
func (a SetUpToDate) String() string {
	return fmt.Sprintf("set condition UpToDate of Machine %s to %s: %s", a.Machine, a.Verdict.Status, a.Verdict.Reason)
}
func (a DeleteMachine) String() string { return fmt.Sprintf("delete Machine %s: %s", a.Name, a.Why) }
func (a MarkNode) String() string      { return fmt.Sprintf("mark Node %s as one of the pool", a.Node) }
func (a DeleteNode) String() string    { return fmt.Sprintf("delete Node %s: %s", a.Node, a.Why) }
func (c *Controller) act(ctx context.Context, s Snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case Join:
		return c.writer.Patch(ctx, s.Pool, func(o client.Object) { ownership.AddToCluster(o, s.Cluster) })
	case reference.Own, reference.Delete:
		return reference.Act(ctx, c.writer, a, s.bootstrap(), s.infra())
	case TakeOver:
		return c.writer.Patch(ctx, s.Pool, func(o client.Object) { follow(s, o.(*clusterv1.MachinePool)) })
	case CreateMachine:
		return c.createMachine(ctx, s, a)
	case AdoptMachine:
		owner := *metav1.NewControllerRef(s.Pool, clusterv1.GroupVersion.WithKind("MachinePool"))
		return c.writer.Patch(ctx, machineOf(s, a.Machine), func(o client.Object) { ownership.Own(o, owner) })
	case SyncMachine:
		return c.syncMachine(ctx, s, a)
	case SyncTimeouts:
		return c.writer.Patch(ctx, machineOf(s, a.Machine), func(o client.Object) {
			o.(*clusterv1.Machine).Spec.Deletion = deletionOf(s)
		})
	case SetUpToDate:
		return c.judge(ctx, s, a)
	case DeleteMachine:
		return c.writer.Delete(ctx, machineOf(s, a.Name))
	case MarkNode:
		return c.markNode(ctx, s, a)
	case DeleteNode:
		return c.deleteNode(ctx, s, a)
	}
	return fault.New(fault.Bug, "UnknownAction", "the machinepool controller does not know how to %s", action)
}

// judge applies the UpToDate condition of a Machine. The Machine controller sets all others.
func (c *Controller) judge(ctx context.Context, s Snapshot, a SetUpToDate) error {
	m := machineOf(s, a.Machine)
	table := condition.Table[condition.Verdict]{{
		Type: clusterv1.MachineUpToDateCondition, Of: func(v condition.Verdict) condition.Verdict { return v },
	}}
	conditions := table.Evaluate(a.Verdict, reconciler.MomentOf(m, s.Now))
	return c.writer.ApplyStatus(ctx, m, map[string]any{"conditions": conditions})
}

func (c *Controller) markNode(ctx context.Context, s Snapshot, a MarkNode) error {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	node := s.Nodes.Items[a.ProviderID]
	err = kube.NewWriter(workload, Name).Patch(ctx, &node, func(o client.Object) { mark(s, o.(*corev1.Node)) })
	return client.IgnoreNotFound(err)
}

func (c *Controller) deleteNode(ctx context.Context, s Snapshot, a DeleteNode) error {
	workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
	if err != nil {
		return err
	}
	err = kube.NewWriter(workload, Name).DeleteAnyway(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Node, UID: a.UID}})
	if fault.KindOf(err) == fault.Conflict { // another Node with the same name
		return nil
	}
	return err
}

func machineOf(s Snapshot, name string) *clusterv1.Machine {
	for i := range s.Machines {
		if s.Machines[i].Name == name {
			return &s.Machines[i]
		}
	}
	return nil
}
