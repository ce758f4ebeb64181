package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/local/backend"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
)

// snapshot is the input of [decide] and [report]: the LocalCluster, its Cluster, and the state of the host.
type snapshot struct {
	Object *infrav1.LocalCluster
	// Cluster that owns the object. Nil if it is not in the cache yet.
	Cluster *clusterv1.Cluster
	// HostedControlPlane is the hosted control plane of the Cluster. Nil if there is none, or one of another kind.
	HostedControlPlane *controlplanev1.HostedControlPlane
	// Name of the network, even if it does not exist yet.
	Name string
	// Network is the observed network. Nil if there is none that belongs to the object.
	Network *backend.Network
	// Capabilities are the properties of the network that are known in advance.
	Capabilities backend.NetworkCapabilities
	// Policy is the operator's configuration.
	Policy policy.Configuration
	// UsedRanges are the ranges that the host uses. Nil until they have been read.
	UsedRanges *[]backend.UsedRange
	// Fault is the error of the backend. Nil if the backend could be read.
	Fault *fault.Fault
	// Machines are the names of the LocalMachines that still need the network, sorted.
	Machines []string
	// Members are the control plane machines that have an address, sorted by name. AddressesPending is set if there are
	// others which will get one.
	Members          []backend.BalancerMember
	AddressesPending bool
	// Balancer is the observed load balancer. Nil if there is none.
	Balancer *backend.Balancer
	// HasBalancers is set if the backend has load balancers.
	HasBalancers bool
	// ReservedEndpoint is the endpoint that is available for a cluster without a network. Invalid until it has been read.
	ReservedEndpoint netip.AddrPort
	// ReservedPorts are the ports of the management cluster itself.
	ReservedPorts []uint16
	Now           time.Time
}

// observe reads the snapshot at the start of each reconciliation; package reconciler calls it. It neither writes nor
// changes the host. A fault of the backend is part of the snapshot.
func (c *controller) observe(ctx context.Context, o *infrav1.LocalCluster) (snapshot, error) {
	s := snapshot{Object: o, Now: c.now(), Name: backend.NetworkName(c.Instance, client.ObjectKeyFromObject(o)), Policy: c.Policy, ReservedPorts: c.ReservedPorts}
	key := client.ObjectKey{Namespace: o.Namespace, Name: ownerName(o)}
	if err := c.readCluster(ctx, &s, key); err != nil {
		return s, err
	}
	var machines infrav1.LocalMachineList
	if err := c.client.List(ctx, &machines, watches.InCluster(Name, key)...); err != nil {
		return s, fmt.Errorf("listing LocalMachines of Cluster %s: %w", key, err)
	}
	for _, m := range machines.Items {
		s.Machines = append(s.Machines, m.Name)
	}
	b, err := c.backendOf(s)
	if err == nil {
		s.Capabilities = b.Networks.NetworkCapabilities(s.Policy)
		var n backend.Network
		var found bool
		if n, found, err = b.Networks.FindNetwork(ctx, s.ref()); found {
			s.Network, s.Name = &n, n.Name
		}
		if err == nil {
			err = c.readBalancer(ctx, b, &s, machines.Items)
		}
	}
	if s.Fault = fault.As(err); s.Fault != nil {
		err = nil
	}
	return s, err
}

func (c *controller) backendOf(s snapshot) (backend.Backend, error) {
	return c.Backends.Choose(s.Object.Spec.Backend.Name(), s.Object.Annotations)
}

// ref returns the reference to the network. It is found by its labels, because other users can write the name in the
// status.
func (s snapshot) ref() backend.Ref {
	return backend.Ref{Object: client.ObjectKeyFromObject(s.Object), Name: s.Object.Status.Network.Name, Cluster: ownerName(s.Object)}
}

// readRequested reads the ranges that the host uses, or the endpoint that is available for the cluster. Package
// reconciler calls it for each read that [decide] requests.
func (c *controller) readRequested(ctx context.Context, s snapshot, q reconciler.ReadRequest) (snapshot, error) {
	b, err := c.backendOf(s)
	if err != nil {
		return s, err
	}
	if _, ok := q.(readEndpoint); ok {
		s.ReservedEndpoint, err = b.Balancers.ReserveEndpoint(ctx, s.ref(), s.Policy)
		if s.Fault = fault.As(err); s.Fault != nil {
			err = nil
		}
		return s, err
	}
	taken, err := b.Networks.UsedRanges(ctx)
	s.UsedRanges = &taken
	if s.Fault = fault.As(err); s.Fault != nil {
		err = nil
	}
	return s, err
}

func (c *controller) readCluster(ctx context.Context, s *snapshot, key client.ObjectKey) (err error) {
	if s.Cluster, err = infrastructure.ReadObject(ctx, c.client, key.Namespace, key.Name, &clusterv1.Cluster{}); err != nil || s.Cluster == nil {
		return err
	}
	if ref := s.Cluster.Spec.ControlPlaneRef; isHosted(ref) && !c.noHosted {
		s.HostedControlPlane, err = infrastructure.ReadObject(ctx, c.client, key.Namespace, ref.Name, &controlplanev1.HostedControlPlane{})
	}
	return err
}

// hostedKind is a control plane without machines. It listens on the Cluster's endpoint unless its spec has one.
const hostedKind = "HostedControlPlane"

// kind of the objects that the controller reconciles.
const kind = "LocalCluster"

func isHosted(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.Kind == hostedKind && ref.APIGroup == controlplanev1.GroupVersion.Group
}

// needsAddress reports whether the control plane needs an endpoint in a spec to listen on. [decide] calls it for
// clusters whose backend has no network.
func needsAddress(p *controlplanev1.HostedControlPlane) bool {
	return p.Spec.Backend.Simulated == nil && !p.Spec.ControlPlaneEndpoint.IsValid()
}

// ownerName returns the name of the Cluster that owns the object, empty if none does.
func ownerName(o metav1.Object) string { return infrastructure.OwnerName(o, "Cluster") }
