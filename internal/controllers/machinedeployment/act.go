package machinedeployment

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// The actions of the controller. Each may be repeated. [decide] plans them, and act runs them.
type (
	// joinCluster sets the cluster label and the owner reference of the deployment.
	joinCluster struct{ Cluster string }
	// adoptSet makes the deployment the controller of a MachineSet that has none.
	adoptSet struct{ Set string }
	// createSet creates the MachineSet for the current template.
	createSet struct {
		Name     string
		Replicas int32
		Revision int64
		// Note explains why Machines are replaced although there is an extension for in-place updates, or is empty.
		Note string
		moves
	}
	// transferFields transfers the ownership of fields that Cluster API's own controller applied to a MachineSet.
	transferFields struct{ Set string }
	// syncSet applies the desired MachineSet. Why is the reason for a change of replicas.
	syncSet struct {
		Name           string
		From, Replicas int32
		Revision       int64
		Current        bool
		Why            string
		// Begins is set if the MachineSet starts to transfer its Machines with this action.
		Begins bool
		moves
	}
	// deleteSet deletes a MachineSet.
	deleteSet struct{ Name, Why string }
	// recordRevision records the current revision on the deployment.
	recordRevision struct{ Revision int64 }
)

func (a joinCluster) String() string { return "join Cluster " + a.Cluster }
func (a adoptSet) String() string {
	return fmt.Sprintf("adopt MachineSet %s: its labels match the selector", a.Set)
}
func (a transferFields) String() string {
	return fmt.Sprintf("transfer the fields of MachineSet %s from %s: fields that the deployment does not set would never be removed", a.Set, formerManager)
}
func (a createSet) String() string {
	return fmt.Sprintf("create MachineSet %s with %d replicas: none has the template of revision %d", a.Name, a.Replicas, a.Revision)
}
func (a syncSet) String() string {
	if a.Why != "" {
		return fmt.Sprintf("scale MachineSet %s from %d to %d: %s", a.Name, a.From, a.Replicas, a.Why)
	}
	return fmt.Sprintf("sync MachineSet %s: it differs from the deployment", a.Name)
}
func (a deleteSet) String() string { return fmt.Sprintf("delete MachineSet %s: %s", a.Name, a.Why) }
func (a recordRevision) String() string {
	return fmt.Sprintf("record revision %d: its MachineSet is the current one", a.Revision)
}

// act runs one action. Package reconciler calls it for each action that [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case joinCluster:
		return c.writer.Patch(ctx, s.Deployment, func(o client.Object) { ownership.AddToCluster(o, s.Cluster) })
	case adoptSet:
		return c.writer.Patch(ctx, setNamed(s, a.Set), func(o client.Object) { adopt(o, s.Deployment) })
	case clone.OwnTemplate:
		return clone.Act(ctx, c.writer, clone.Owner{Object: s.Deployment, Cluster: s.Cluster, Templates: s.Templates}, a)
	case createSet:
		set := desiredObject(s, a.share())
		err := c.writer.CreateApplied(ctx, set)
		if err == nil {
			c.created.Add(s.Deployment.UID, a.Name, s.Now)
			c.begun.Add(set.GetUID(), s.Now)
		}
		return err
	case transferFields:
		return c.transferFields(ctx, setNamed(s, a.Set))
	case syncSet:
		return c.writer.Apply(ctx, setNamed(s, a.Name), desiredObject(s, a.share()))
	case deleteSet:
		return c.writer.Delete(ctx, setNamed(s, a.Name).DeepCopy())
	case recordRevision:
		return c.writer.Patch(ctx, s.Deployment, func(o client.Object) {
			annotations := merged(o.GetAnnotations())
			annotations[clusterv1.RevisionAnnotation] = strconv.FormatInt(a.Revision, 10)
			o.SetAnnotations(annotations)
		})
	}
	return reconciler.UnknownAction("machinedeployment", action)
}

// transferFields reads the MachineSet from the API server, because the cache does not contain all managed fields, and
// transfers field ownership under the condition that the MachineSet does not change.
func (c *controller) transferFields(ctx context.Context, set *clusterv1.MachineSet) error {
	newest := &clusterv1.MachineSet{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(set), newest); err != nil {
		return fmt.Errorf("reading the managers of MachineSet %s: %w", set.Name, err)
	}
	if newest.UID != set.UID {
		return nil
	}
	return c.writer.TransferOwnership(ctx, newest, fieldTransfer())
}

// adopt makes the deployment the controller of a MachineSet, and restores the MachineSet's finalizer in the same
// write.
func adopt(o client.Object, d *clusterv1.MachineDeployment) {
	controllerutil.AddFinalizer(o, clusterv1.MachineSetFinalizer)
	ownership.AddOwner(o, *metav1.NewControllerRef(d, clusterv1.GroupVersion.WithKind(kind)))
}
