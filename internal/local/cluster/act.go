package cluster

import (
	"context"
	"fmt"
	"net/netip"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// readUsedRanges reads the ranges that the host already uses. controller.readRequested (observe.go) reads them when
// [decide] requests it.
type readUsedRanges struct{}

func (readUsedRanges) String() string { return "the address ranges that the host uses" }

// readEndpoint reads the endpoint that is available for the cluster. controller.readRequested (observe.go) reads it
// when [decide] requests it.
type readEndpoint struct{}

func (readEndpoint) String() string { return "an available endpoint for the cluster" }

// ensureNetwork creates the network.
type ensureNetwork struct {
	Name string
	// Subnet is the requested range. Invalid: any.
	Subnet netip.Prefix
	// Internet requests a route out of the host.
	Internet bool
	Why      string
}

func (a ensureNetwork) String() string {
	if a.Internet {
		return fmt.Sprintf("create network %s with internet access: %s", a.Name, a.Why)
	}
	return fmt.Sprintf("create network %s: %s", a.Name, a.Why)
}

// deleteNetwork deletes the network.
type deleteNetwork struct{ Name string }

func (a deleteNetwork) String() string {
	return fmt.Sprintf("delete network %s: the LocalCluster is being deleted", a.Name)
}

// setEndpoint writes the control plane endpoint, and the finalizer, because the next step creates the process that
// listens on it.
type setEndpoint struct {
	Host string
	Port int32
}

func (a setEndpoint) String() string {
	return fmt.Sprintf("set the control plane endpoint to %s: nothing else provides one", endpoint(a))
}

func endpoint(a setEndpoint) *clusterv1.APIEndpoint {
	return &clusterv1.APIEndpoint{Host: a.Host, Port: a.Port}
}

// ensureBalancer starts the load balancer or updates its members.
type ensureBalancer struct {
	Listen  netip.AddrPort
	Members string
	Why     string
}

func (a ensureBalancer) String() string {
	return fmt.Sprintf("forward connections for %s to %s: %s", a.Listen, a.Members, a.Why)
}

// deleteBalancer stops the load balancer.
type deleteBalancer struct{ Why string }

func (a deleteBalancer) String() string { return "stop the load balancer: " + a.Why }

// act runs one action on the host or on the LocalCluster. Package reconciler calls it for each action that [decide]
// planned, in order.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	b, err := c.backendOf(s)
	if err != nil {
		return err
	}
	switch a := a.(type) {
	case ensureNetwork:
		_, err := b.Networks.EnsureNetwork(ctx, backend.NetworkSpec{
			Owner: backend.Owner{Cluster: s.Cluster.Name, Object: client.ObjectKeyFromObject(s.Object), UID: s.Object.UID},
			Name:  a.Name, Subnet: a.Subnet, Internet: a.Internet, Ranges: backend.ClusterRanges(s.Cluster), Policy: s.Policy,
		})
		return err
	case deleteNetwork:
		ref := s.ref()
		ref.ID = s.Network.ID
		return b.Networks.DeleteNetwork(ctx, ref)
	case ensureBalancer:
		return b.Balancers.EnsureBalancer(ctx, backend.BalancerSpec{Ref: s.ref(), Listen: a.Listen, Members: s.Members})
	case deleteBalancer:
		return b.Balancers.DeleteBalancer(ctx, s.ref())
	case setEndpoint:
		return c.writer.Patch(ctx, s.Object, func(o client.Object) {
			o.(*infrav1.LocalCluster).Spec.ControlPlaneEndpoint = *endpoint(a)
			controllerutil.AddFinalizer(o, infrav1.LocalClusterFinalizer)
		})
	}
	return reconciler.UnknownAction("local cluster", a)
}
