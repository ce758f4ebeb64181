package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

func (c *Controller) act(ctx context.Context, s Snapshot, a loop.Action) error {
	switch a := a.(type) {
	case EnsureNetwork:
		_, err := c.networks.EnsureNetwork(ctx, backend.NetworkSpec{
			Owner: backend.Owner{Cluster: s.Cluster.Name, Object: client.ObjectKeyFromObject(s.Object), UID: s.Object.UID},
			Name:  a.Name, Subnet: a.Subnet, Ranges: s.ranges(), Policy: s.Policy,
		})
		return err
	case DeleteNetwork:
		ref := s.ref()
		ref.ID = s.Network.ID
		return c.networks.DeleteNetwork(ctx, ref)
	case SetEndpoint:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) {
			o.(*infrav1.LocalCluster).Spec.ControlPlaneEndpoint = *endpoint(a)
		})
	}
	return fault.New(fault.Bug, "UnknownAction", "the local cluster controller does not know how to %s", a)
}
