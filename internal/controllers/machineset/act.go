package machineset

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// The actions of the controller in addition to the actions of package machines. Each may be repeated. [decide] plans
// them, and act runs them.
type (
	// joinCluster sets the cluster label of the MachineSet, and the owner reference of a standalone one.
	joinCluster struct{ Cluster string }
	// adoptMachine makes the MachineSet the controller of a Machine that has none.
	adoptMachine struct{ Machine string }
)

// Independent marks actions that may run in parallel. Package reconciler checks for this method.
func (adoptMachine) Independent() {}

// askClones requests the bootstrap configs and infrastructure machines of the Machines. The method readClones
// (observe.go) performs the read.
type askClones struct{}

func (a joinCluster) String() string { return "join Cluster " + a.Cluster }
func (a adoptMachine) String() string {
	return fmt.Sprintf("adopt Machine %s: it matches the selector", a.Machine)
}
func (a askClones) String() string {
	return "bootstrap configs and infrastructure machines of the Machines"
}

// act runs one action. Package reconciler calls it for each action that [decide] planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, action reconciler.Action) error {
	switch a := action.(type) {
	case joinCluster:
		return c.writer.Patch(ctx, s.Set, func(o client.Object) { join(s.Set, s.Cluster, o) })
	case adoptMachine:
		return c.adopt(ctx, s, a)
	case clone.OwnTemplate, clone.AddFinalizer, clone.DeleteTemplate, clone.RemoveFinalizer:
		return clone.Act(ctx, c.writer, clone.Owner{Object: s.Set, Cluster: s.Cluster, Templates: s.templates()}, action)
	case transferMachines:
		return c.transferMachines(ctx, s, a)
	case machines.BeginUpdate:
		c.verified.Forget(s.Set) // the fields from another template must be compared completely
		return c.machineWriter().Act(ctx, s.State(), a)
	case machines.CreateMachines:
		return c.create(ctx, s, a)
	}
	return c.machineWriter().Act(ctx, s.State(), action)
}

// machineWriter returns the writer of Machines. "manager" was the field manager of Cluster API's own controllers before
// their MachineSets used server-side apply, and is also used by many other programs. Its fields therefore belong to the
// MachineSet only if the MachineSet applies them.
func (c *controller) machineWriter() machines.MachineWriter {
	return machines.MachineWriter{
		Live: c.live, Writer: c.writer, Manager: manager, MetadataManager: metadataManager, Former: []string{"manager", manager},
		Pending: &c.pending,
	}
}

// create resets the verification of the MachineSet if new Machines have to be compared completely: Machines of a
// standalone MachineSet, whose origin has to be read, and Machines whose creation may have left an orphan.
func (c *controller) create(ctx context.Context, s snapshot, a machines.CreateMachines) error {
	if s.Deployment == nil {
		c.verified.Forget(s.Set)
	}
	err := c.machineWriter().Act(ctx, s.State(), a)
	if err != nil {
		c.verified.Forget(s.Set)
	}
	return err
}

// join sets the cluster label, and makes the Cluster the owner of a standalone MachineSet.
func join(set *clusterv1.MachineSet, cluster *clusterv1.Cluster, o client.Object) {
	if isStandalone(set) {
		ownership.AddToCluster(o, cluster)
		return
	}
	ownership.Label(o, clusterv1.ClusterNameLabel, cluster.Name)
}

// adopt uses the Machine's resourceVersion as a precondition, so that only one of two competing MachineSets
// succeeds.
func (c *controller) adopt(ctx context.Context, s snapshot, a adoptMachine) error {
	for _, m := range s.Others {
		if m.Name == a.Machine {
			return c.writer.Patch(ctx, m, func(o client.Object) { ownership.AddOwner(o, ownerReference(s.Set)) })
		}
	}
	return nil
}
