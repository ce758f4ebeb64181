package workload

import (
	"context"
	"net"
	"net/netip"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
)

// ManagedAddresses detects addresses that Slipway chose for API servers of workload clusters; the manager passes it as
// [Config.IsManagedAddress]. It relies on the status of objects only, because users who can write a Cluster or its
// Secrets can write addresses there, but cannot write a status.
type ManagedAddresses struct{ Live client.Reader }

// Include reports whether an address (host and port) is in the network that Slipway created for the Cluster, or is the
// endpoint of an available hosted control plane of the Cluster. A failed probe or connection attempt calls it.
func (o ManagedAddresses) Include(ctx context.Context, cluster *clusterv1.Cluster, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	return o.inNetwork(ctx, cluster, host) || o.isHosted(ctx, cluster, host, port)
}

func (o ManagedAddresses) inNetwork(ctx context.Context, cluster *clusterv1.Cluster, host string) bool {
	ref := cluster.Spec.InfrastructureRef
	if ref.Kind != "LocalCluster" || ref.APIGroup != infrav1.GroupVersion.Group {
		return false
	}
	var local infrav1.LocalCluster
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, &local); err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !condition.Set(local.Status.Conditions).IsTrue(infrav1.NetworkReadyCondition) {
		return false
	}
	network, err := netip.ParsePrefix(local.Status.Network.Subnet)
	return err == nil && network.Contains(ip)
}

func (o ManagedAddresses) isHosted(ctx context.Context, cluster *clusterv1.Cluster, host, port string) bool {
	ref := cluster.Spec.ControlPlaneRef
	if ref.Kind != "HostedControlPlane" || ref.APIGroup != controlplanev1.GroupVersion.Group {
		return false
	}
	var plane controlplanev1.HostedControlPlane
	if err := o.Live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, &plane); err != nil {
		return false
	}
	at := plane.Spec.ControlPlaneEndpoint
	return condition.Set(plane.Status.Conditions).IsTrue(controlplanev1.AvailableCondition) &&
		at.Host == host && strconv.Itoa(int(at.Port)) == port
}
