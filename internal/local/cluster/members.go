package cluster

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/backend"
)

// readBalancer is the part of observe for the load balancer. It reads the load balancer and its desired members: the
// addresses of the control plane Machines' containers, read from the host and not from statuses, which other users can
// write. Hosted control planes have no load balancer.
func (c *controller) readBalancer(ctx context.Context, b backend.Backend, s *snapshot, locals []infrav1.LocalMachine) error {
	if s.HasBalancers = b.Balancers != nil; !s.HasBalancers || s.Cluster != nil && isHosted(s.Cluster.Spec.ControlPlaneRef) {
		return nil
	}
	found, exists, err := b.Balancers.FindBalancer(ctx, s.ref())
	if err != nil {
		return err
	}
	if exists {
		s.Balancer = &found
	}
	if s.Cluster == nil || s.Network == nil {
		return nil
	}
	for i := range locals {
		if err := c.readMember(ctx, b, s, &locals[i]); err != nil {
			return err
		}
	}
	slices.SortFunc(s.Members, func(a, b backend.BalancerMember) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// readMember adds the machine of a LocalMachine to the members if it runs the control plane.
func (c *controller) readMember(ctx context.Context, b backend.Backend, s *snapshot, local *infrav1.LocalMachine) error {
	owner, err := infrastructure.ReadObject(ctx, c.client, local.Namespace, infrastructure.OwnerName(local, "Machine"), &clusterv1.Machine{})
	if err != nil || owner == nil {
		return err
	}
	if _, ok := owner.Labels[clusterv1.MachineControlPlaneLabel]; !ok {
		return nil
	}
	key := client.ObjectKeyFromObject(local)
	name := backend.ResolveMachineName(c.Instance, local.Spec.ProviderID, key)
	if name == "" {
		return nil
	}
	m, err := b.Machines.Inspect(ctx, backend.Ref{Object: key, Name: name, Cluster: s.Cluster.Name, ControlPlane: true})
	switch {
	case fault.As(err) != nil && fault.As(err).Kind == fault.Invalid: // it belongs to another object
		return nil
	case err != nil:
		return err
	case !s.Network.Subnet.Contains(m.Address):
		s.AddressesPending = s.AddressesPending || local.DeletionTimestamp.IsZero()
		return nil
	}
	s.Members = append(s.Members, backend.BalancerMember{
		Name: owner.Name, Address: netip.AddrPortFrom(m.Address, apiServerPort),
		Leaving: !owner.DeletionTimestamp.IsZero() || !local.DeletionTimestamp.IsZero(),
	})
	return nil
}
