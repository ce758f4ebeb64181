package machine

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// The actions of the controller. Each may be repeated.
type (
	// Join labels the Machine with its Cluster, and adopts it if nobody owns it.
	Join struct{ Cluster string }
	// Own makes the Machine the controller of one of its provider objects.
	Own struct {
		What       part
		Kind, Name string
	}
	// TakeOver makes the spec follow bootstrap and infrastructure.
	TakeOver struct{}
	// SyncNode says on the Node which Machine it is of.
	SyncNode struct{ Node string }
	// Cordon keeps new Pods away from the Node.
	Cordon struct{ Node string }
	// Evict asks Pods of the Node to leave.
	Evict struct {
		Node string
		// Pods is how many.
		Pods    int
		attempt *attempt
	}
	// DeleteReference deletes one of the Machine's provider objects.
	DeleteReference struct {
		What       part
		Kind, Name string
	}
	// NoteProviderID writes into the spec of a Machine that is deleted what its infrastructure says.
	NoteProviderID struct{ ID string }
	// DeleteNode deletes the Node from the workload cluster.
	DeleteNode struct{ Node string }
)

// attempt is which Pods an Evict asks to leave and, once it is done, what became of that.
type attempt struct {
	targets []drain.Target
	results drain.Results
}

// Independent implements loop.Independent.
func (Own) Independent() {}

func (a Join) String() string { return "join Cluster " + a.Cluster }
func (a Own) String() string {
	return fmt.Sprintf("own %s %s: it is the Machine's %s", a.Kind, a.Name, a.What)
}
func (a TakeOver) String() string { return "take over what bootstrap and infrastructure report" }
func (a SyncNode) String() string {
	return fmt.Sprintf("sync labels, annotations and taints to Node %s", a.Node)
}
func (a Cordon) String() string { return fmt.Sprintf("cordon Node %s: its Machine is deleted", a.Node) }
func (a Evict) String() string {
	return fmt.Sprintf("evict %d Pods from Node %s: its Machine is deleted", a.Pods, a.Node)
}
func (a DeleteReference) String() string {
	return fmt.Sprintf("delete %s %s: the Machine is deleted", a.Kind, a.Name)
}
func (a NoteProviderID) String() string {
	return fmt.Sprintf("note the provider ID %s, by which its Node is found when the infrastructure is gone", a.ID)
}
func (a DeleteNode) String() string {
	return fmt.Sprintf("delete Node %s: its Machine is deleted", a.Node)
}

func (c *Controller) act(ctx context.Context, s Snapshot, action loop.Action) error {
	switch a := action.(type) {
	case Join:
		return c.writer.Patch(ctx, s.Machine, func(o client.Object) { join(s, o) })
	case Own:
		return c.own(ctx, s, a)
	case TakeOver:
		return c.writer.Patch(ctx, s.Machine, func(o client.Object) { follow(s, o.(*clusterv1.Machine)) })
	case SyncNode:
		return c.syncNode(ctx, s)
	case Cordon:
		return c.cordon(ctx, s)
	case Evict:
		return c.evict(ctx, s, a)
	case DeleteReference:
		return c.writer.DeleteAnyway(ctx, s.reference(a.What))
	case NoteProviderID:
		return c.writer.Patch(ctx, s.Machine, func(o client.Object) { o.(*clusterv1.Machine).Spec.ProviderID = a.ID })
	case DeleteNode:
		return c.deleteNode(ctx, s, a)
	}
	return fault.New(fault.Bug, "UnknownAction", "the machine controller does not know how to %s", action)
}

// join labels the Machine with its Cluster, which becomes the owner of a standalone one (MA-02, MA-03).
func join(s Snapshot, o client.Object) {
	if standalone(s) {
		ownership.Join(o, s.Cluster)
		return
	}
	ownership.Label(o, clusterv1.ClusterNameLabel, s.Cluster.Name)
}

// own hands a provider object over from whoever made it (a MachineSet, a pool, a
// control plane) to the Machine. One that another Machine controls stays (MA-06).
func (c *Controller) own(ctx context.Context, s Snapshot, a Own) error {
	object := s.reference(a.What)
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "Machine" && owner.UID != s.Machine.UID && owner.Name != s.Machine.Name {
		return fault.New(fault.Invalid, "OwnedByOther", "%s %s belongs to Machine %s; give this Machine one of its own", a.Kind, a.Name, owner.Name)
	}
	return c.writer.Patch(ctx, object, func(o client.Object) {
		ownership.Label(o, clusterv1.ClusterNameLabel, s.Machine.Spec.ClusterName)
		o.SetOwnerReferences(slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
			return ref.Controller != nil && *ref.Controller
		}))
		ownership.Own(o, *metav1.NewControllerRef(s.Machine, clusterv1.GroupVersion.WithKind("Machine")))
	})
}

// syncNode patches the Node under its resourceVersion, and only if that changes
// something (MA-18).
func (c *Controller) syncNode(ctx context.Context, s Snapshot) error {
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err != nil {
		return err
	}
	err = kube.NewWriter(workload, Name).Patch(ctx, s.Node.Item, func(o client.Object) { sync(s, o.(*corev1.Node)) })
	return client.IgnoreNotFound(err)
}

func (c *Controller) deleteNode(ctx context.Context, s Snapshot, a DeleteNode) error {
	workload, err := c.workloads.Client(ctx, clusterKey(s.Machine))
	if err != nil {
		return err
	}
	err = kube.NewWriter(workload, Name).DeleteAnyway(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Node, UID: s.Node.Item.UID}})
	if fault.KindOf(err) == fault.Conflict { // another Node of that name
		return nil
	}
	return err
}

func (s Snapshot) reference(what part) client.Object {
	if what == bootstrapConfig {
		return s.Bootstrap.Unstructured
	}
	return s.Infra.Unstructured
}
