package machinedeployment

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// The actions of the controller. Each may be repeated.
type (
	// Join makes the deployment belong to its Cluster.
	Join struct{ Cluster string }
	// Adopt makes the deployment the controller of a MachineSet that has none.
	Adopt struct{ Set string }
	// OwnTemplate makes the Cluster an owner of a template; Place is that of the template in the snapshot.
	OwnTemplate struct {
		Kind, Name string
		Place      int
	}
	// CreateSet creates the MachineSet of the template.
	CreateSet struct {
		Name     string
		Replicas int32
		Revision int64
	}
	// TakeOver takes over what the reference implementation has said of a MachineSet.
	TakeOver struct{ Set string }
	// SyncSet makes a MachineSet what it should be. Why is that of a change of replicas.
	SyncSet struct {
		Name           string
		From, Replicas int32
		Revision       int64
		Current        bool
		Why            string
	}
	// DeleteSet deletes a MachineSet.
	DeleteSet struct{ Name, Why string }
	// RecordRevision says on the deployment which revision is current.
	RecordRevision struct{ Revision int64 }
)

func (a Join) String() string { return "join Cluster " + a.Cluster }
func (a Adopt) String() string {
	return fmt.Sprintf("adopt MachineSet %s: its labels say that it is of this deployment", a.Set)
}
func (a TakeOver) String() string {
	return fmt.Sprintf("take over MachineSet %s from %s: what it says and the deployment does not would stay forever", a.Set, formerManager)
}
func (a OwnTemplate) String() string {
	return fmt.Sprintf("make the Cluster own %s %s: Machines are made from it", a.Kind, a.Name)
}
func (a CreateSet) String() string {
	return fmt.Sprintf("create MachineSet %s with %d replicas: none has the template of revision %d", a.Name, a.Replicas, a.Revision)
}
func (a SyncSet) String() string {
	if a.Why != "" {
		return fmt.Sprintf("scale MachineSet %s from %d to %d: %s", a.Name, a.From, a.Replicas, a.Why)
	}
	return fmt.Sprintf("hand down to MachineSet %s what the deployment says of it", a.Name)
}
func (a DeleteSet) String() string { return fmt.Sprintf("delete MachineSet %s: %s", a.Name, a.Why) }
func (a RecordRevision) String() string {
	return fmt.Sprintf("record revision %d: its MachineSet is the current one", a.Revision)
}

func (c *Controller) act(ctx context.Context, s Snapshot, action loop.Action) error {
	switch a := action.(type) {
	case Join:
		return c.writer.Patch(ctx, s.Deployment, func(o client.Object) { ownership.Join(o, s.Cluster) })
	case Adopt:
		return c.writer.Patch(ctx, setNamed(s, a.Set), func(o client.Object) { adopt(o, s.Deployment) })
	case OwnTemplate:
		return c.writer.Patch(ctx, s.Templates[a.Place].Object.Unstructured, func(o client.Object) {
			ownership.Own(o, ownership.ByCluster(s.Cluster))
		})
	case CreateSet:
		err := c.writer.CreateApplied(ctx, wanted(s, a.part()))
		if err == nil {
			c.created.Add(s.Deployment.UID, a.Name, s.Now)
		}
		return err
	case TakeOver:
		return c.takeOver(ctx, setNamed(s, a.Set))
	case SyncSet:
		return c.writer.Apply(ctx, setNamed(s, a.Name), wanted(s, a.part()))
	case DeleteSet:
		return c.writer.Delete(ctx, setNamed(s, a.Name).DeepCopy())
	case RecordRevision:
		return c.writer.Patch(ctx, s.Deployment, func(o client.Object) {
			annotations := merged(o.GetAnnotations())
			annotations[clusterv1.RevisionAnnotation] = strconv.FormatInt(a.Revision, 10)
			o.SetAnnotations(annotations)
		})
	}
	return fault.New(fault.Bug, "UnknownAction", "the machinedeployment controller does not know how to %s", action)
}

// takeOver is conditional on the state of the MachineSet, which is read past the cache: a cache does not have all managers.
func (c *Controller) takeOver(ctx context.Context, set *clusterv1.MachineSet) error {
	newest := &clusterv1.MachineSet{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(set), newest); err != nil {
		return fmt.Errorf("reading the managers of MachineSet %s: %w", set.Name, err)
	}
	if newest.UID != set.UID {
		return nil
	}
	return c.writer.HandOver(ctx, newest, former())
}

// adopt makes the deployment the controller of a MachineSet, which gets its finalizer back in the same write.
func adopt(o client.Object, d *clusterv1.MachineDeployment) {
	controllerutil.AddFinalizer(o, clusterv1.MachineSetFinalizer)
	ownership.Own(o, *metav1.NewControllerRef(d, clusterv1.GroupVersion.WithKind(kind)))
}
