package simulated

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/simulated"
)

// balancers implements backend.Balancers for the LocalCluster controller: it offers endpoints to clusters whose control
// planes run on simulated machines. There is nothing to balance, because a simulated cluster has one API server.
type balancers struct {
	server *simulated.Server

	mu sync.Mutex
	// names are the names of the control planes, by the LocalClusters read so far.
	names map[types.NamespacedName]string
}

var _ backend.Balancers = (*balancers)(nil)

// name returns and records the name of a LocalCluster's control plane. It is recorded because it cannot be derived once
// the object is gone.
func (b *balancers) name(ref backend.Ref) string {
	name := simulated.MachineControlPlaneName(ref.ClusterKey())
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[ref.Object] = name
	return name
}

// recordCluster is the function RecordCluster of the backend. It covers a process that starts while the LocalCluster is
// paused and therefore never calls ReserveEndpoint for it.
func (b *balancers) recordCluster(ref backend.Ref) {
	if ref.Cluster != "" {
		b.name(ref)
	}
}

// deleteState is the function DeleteState of the backend. Without it, the control plane would retain its port and its
// file. The LocalCluster controller calls it through backend.Set.
func (b *balancers) deleteState(cluster types.NamespacedName) error {
	b.mu.Lock()
	name := b.names[cluster]
	delete(b.names, cluster)
	kept := name == "" || slices.Contains(slices.Collect(maps.Values(b.names)), name) // another LocalCluster names the same Cluster
	b.mu.Unlock()
	if kept {
		return nil
	}
	return b.server.Remove(name)
}

func (b *balancers) ReserveEndpoint(_ context.Context, ref backend.Ref, allowed policy.Configuration) (netip.AddrPort, error) {
	name := b.name(ref)
	if !b.server.IsKnown(name) {
		if err := checkQuota(b.server, ref.Object.Namespace, allowed); err != nil {
			return netip.AddrPort{}, err
		}
	}
	port, err := b.server.Reserve(name)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.ParseAddrPort(simulated.Host + ":" + strconv.Itoa(port))
}

func (*balancers) EnsureBalancer(context.Context, backend.BalancerSpec) error { return nil }

// FindBalancer implements backend.Balancers: a load balancer exists while the cluster exists or has a port.
func (b *balancers) FindBalancer(_ context.Context, ref backend.Ref) (backend.Balancer, bool, error) {
	name := b.name(ref)
	return backend.Balancer{Running: b.server.Status(name).Running}, b.server.IsKnown(name), nil
}

func (b *balancers) DeleteBalancer(_ context.Context, ref backend.Ref) error {
	return b.server.Remove(b.name(ref))
}
