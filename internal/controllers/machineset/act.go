package machineset

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/ownership"
)

// The actions of the controller beside those of package machines. Each may be repeated.
type (
	// Join makes the set belong to its Cluster.
	Join struct{ Cluster string }
	// Adopt makes the set the controller of a Machine that has none.
	Adopt struct{ Machine string }
)

// Independent implements loop.Independent.
func (Adopt) Independent() {}

// AskClones asks for the bootstrap configs and infrastructure machines of the Machines.
type AskClones struct{}

func (a Join) String() string { return "join Cluster " + a.Cluster }
func (a Adopt) String() string {
	return fmt.Sprintf("adopt Machine %s: it matches the selector", a.Machine)
}
func (a AskClones) String() string {
	return "bootstrap configs and infrastructure machines of the Machines"
}

func (c *Controller) act(ctx context.Context, s Snapshot, action loop.Action) error {
	switch a := action.(type) {
	case Join:
		return c.writer.Patch(ctx, s.Set, func(o client.Object) { join(s.Set, s.Cluster, o) })
	case Adopt:
		return c.adopt(ctx, s, a)
	case clone.OwnTemplate, clone.Protect, clone.DeleteTemplate, clone.Unprotect:
		return clone.Act(ctx, c.writer, clone.Owner{Object: s.Set, Cluster: s.Cluster, Templates: s.templates()}, action)
	case HandOver:
		return c.handOver(ctx, s, a)
	case machines.BeginUpdate:
		c.verified.Forget(s.Set) // what the Machine had of another template is compared in full
		return c.keeper().Act(ctx, s.State(), a)
	case machines.Create:
		return c.create(ctx, s, a)
	}
	return c.keeper().Act(ctx, s.State(), action)
}

// keeper writes Machines. "manager" is the field manager of the reference implementation before its MachineSets applied, and of
// many other programs: which of its fields are the set's is only known of those that the set wants.
func (c *Controller) keeper() machines.Keeper {
	return machines.Keeper{
		Live: c.live, Writer: c.writer, Manager: manager, MetadataManager: metadataManager, Former: []string{"manager", manager},
		Pending: &c.pending,
	}
}

// create forgets that the set was verified where new Machines of it have to be compared in full: those of a standalone set, whose
// origin has to be read, and those of which an orphan may be left.
func (c *Controller) create(ctx context.Context, s Snapshot, a machines.Create) error {
	if s.Deployment == nil {
		c.verified.Forget(s.Set)
	}
	err := c.keeper().Act(ctx, s.State(), a)
	if err != nil {
		c.verified.Forget(s.Set)
	}
	return err
}

// join labels the set with its Cluster, which becomes the owner of a standalone one.
func join(set *clusterv1.MachineSet, cluster *clusterv1.Cluster, o client.Object) {
	if isStandalone(set) {
		ownership.Join(o, cluster)
		return
	}
	ownership.Label(o, clusterv1.ClusterNameLabel, cluster.Name)
}

// adopt is conditional on the Machine's resourceVersion: of two sets that try, one succeeds.
func (c *Controller) adopt(ctx context.Context, s Snapshot, a Adopt) error {
	for _, m := range s.Others {
		if m.Name == a.Machine {
			return c.writer.Patch(ctx, m, func(o client.Object) { ownership.Own(o, ownerReference(s.Set)) })
		}
	}
	return nil
}
