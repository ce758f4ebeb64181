package container

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Balancers runs the load balancers of clusters whose nodes are containers, for the LocalCluster controller. They are
// processes of this host that listen on its address in the cluster's network.
type Balancers struct{ Supervisor *loadbalancer.Supervisor }

var _ backend.Balancers = Balancers{}

// ReserveEndpoint implements backend.Balancers. It is never called, because these clusters have a network.
func (Balancers) ReserveEndpoint(context.Context, backend.Ref, policy.Configuration) (netip.AddrPort, error) {
	return netip.AddrPort{}, nil
}

func (b Balancers) EnsureBalancer(ctx context.Context, spec backend.BalancerSpec) error {
	name := nameOf(spec.Ref.Object)
	before, found, err := b.load(name)
	if err != nil {
		return err
	}
	if found && before.Listen != spec.Listen { // the process exits by itself; Remove waits for it
		if err := b.Supervisor.Remove(ctx, name); err != nil {
			return err
		}
	}
	c := loadbalancer.Config{Listen: spec.Listen}
	for _, m := range spec.Members {
		c.Members = append(c.Members, loadbalancer.Member(m))
	}
	_, err = b.Supervisor.Ensure(name, c)
	return err
}

func (b Balancers) FindBalancer(_ context.Context, ref backend.Ref) (backend.Balancer, bool, error) {
	name := nameOf(ref.Object)
	c, found, err := b.load(name)
	if err != nil || !found {
		return backend.Balancer{}, false, err
	}
	st, _, err := b.Supervisor.Status(name)
	out := backend.Balancer{Running: st.Running, Detail: st.Failure, Listen: c.Listen, Healthy: st.State.Healthy, Expired: st.State.Expired}
	for _, m := range c.Members {
		out.Members = append(out.Members, backend.BalancerMember(m))
	}
	return out, true, err
}

func (b Balancers) load(name string) (loadbalancer.Config, bool, error) {
	c, err := b.Supervisor.Config(name)
	if errors.Is(err, os.ErrNotExist) {
		return c, false, nil
	}
	return c, err == nil, err
}

func (b Balancers) DeleteBalancer(ctx context.Context, ref backend.Ref) error {
	return b.Supervisor.Remove(ctx, nameOf(ref.Object))
}

// nameOf returns the name of a LocalCluster's load balancer, which is also the name of its directory. It is
// unambiguous, because namespaces contain no dots. It must not change, because running load balancers are found by it.
func nameOf(o types.NamespacedName) string { return o.Namespace + "." + o.Name }

// ClusterOfBalancer returns the LocalCluster whose load balancer has the name. Package local maps the exit of a load
// balancer process to its LocalCluster with it.
func ClusterOfBalancer(name string) (types.NamespacedName, bool) {
	namespace, object, found := strings.Cut(name, ".")
	return types.NamespacedName{Namespace: namespace, Name: object}, found
}
