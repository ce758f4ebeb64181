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
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/membership"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providers/local/backend"
)

// Snapshot is what Decide looks at.
type Snapshot struct {
	Object *infrav1.LocalCluster
	// Cluster that owns the object; nil if it is not in the cache yet.
	Cluster *clusterv1.Cluster
	// Plane is the hosted control plane of the Cluster; nil if there is none, or another kind.
	Plane *controlplanev1.HostedControlPlane
	// Name of the network, whether it exists or not.
	Name string
	// Network as it is; nil if there is none that belongs to the object.
	Network *backend.Network
	// Terms are what is known of the network beforehand.
	Terms backend.NetworkTerms
	// Policy is what the operator allows.
	Policy policy.Configuration
	// Taken is what the host uses already; nil while it was not asked for.
	Taken *[]backend.Taken
	// Fault is why the backend could not be asked; nil if it was.
	Fault *fault.Fault
	// Machines are the names of the LocalMachines that still need the network, sorted.
	Machines []string
	// Members are the machines that run the control plane and have an address, sorted by name. Pending tells that there are
	// others, which will have one.
	Members []backend.Member
	Pending bool
	// Balancer in front of them as it is; nil if there is none.
	Balancer *backend.Balancer
	// Balanced tells that there can be one.
	Balanced bool
	// Offered is the endpoint that a cluster without a network can have; invalid while it was not asked for.
	Offered netip.AddrPort
	// ReservedPorts are those of the management cluster itself.
	ReservedPorts []uint16
	Now           time.Time
}

func (c *Controller) observe(ctx context.Context, o *infrav1.LocalCluster) (Snapshot, error) {
	s := Snapshot{Object: o, Now: c.now(), Name: backend.NetworkName(c.instance, client.ObjectKeyFromObject(o)), Policy: c.policy, ReservedPorts: c.reserved}
	key := client.ObjectKey{Namespace: o.Namespace, Name: ownerName(o)}
	if err := c.readCluster(ctx, &s, key); err != nil {
		return s, err
	}
	var machines infrav1.LocalMachineList
	if err := c.client.List(ctx, &machines, membership.InCluster(Name, key)...); err != nil {
		return s, fmt.Errorf("listing LocalMachines of Cluster %s: %w", key, err)
	}
	for _, m := range machines.Items {
		s.Machines = append(s.Machines, m.Name)
	}
	b, err := c.backendOf(s)
	if err == nil {
		s.Terms = b.Networks.NetworkTerms(s.Policy)
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

func (c *Controller) backendOf(s Snapshot) (backend.Backend, error) {
	return c.backends.Choose(s.Object.Spec.Backend.Name(), s.Object.Annotations)
}

// ref is how the network is found: by its labels. Others can write the name in the status, so that it tells nothing.
func (s Snapshot) ref() backend.Ref {
	return backend.Ref{Object: client.ObjectKeyFromObject(s.Object), Name: s.Object.Status.Network.Name, Cluster: ownerName(s.Object)}
}

// answer asks what the host uses already, or which endpoint the cluster can have.
func (c *Controller) answer(ctx context.Context, s Snapshot, q loop.Question) (Snapshot, error) {
	b, err := c.backendOf(s)
	if err != nil {
		return s, err
	}
	if _, ok := q.(AskEndpoint); ok {
		s.Offered, err = b.Balancers.Offer(ctx, s.ref(), s.Policy)
		if s.Fault = fault.As(err); s.Fault != nil {
			err = nil
		}
		return s, err
	}
	taken, err := b.Networks.TakenRanges(ctx)
	s.Taken = &taken
	if s.Fault = fault.As(err); s.Fault != nil {
		err = nil
	}
	return s, err
}

func (c *Controller) readCluster(ctx context.Context, s *Snapshot, key client.ObjectKey) error {
	cluster := &clusterv1.Cluster{}
	if err := c.client.Get(ctx, key, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(wrap(err, "Cluster", key))
	}
	s.Cluster = cluster
	ref := cluster.Spec.ControlPlaneRef
	if !hosted(ref) || c.noHosted {
		return nil
	}
	plane := &controlplanev1.HostedControlPlane{}
	key.Name = ref.Name
	if err := c.client.Get(ctx, key, plane, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(wrap(err, hostedKind, key))
	}
	s.Plane = plane
	return nil
}

func wrap(err error, kind string, key client.ObjectKey) error {
	return fmt.Errorf("reading %s %s: %w", kind, key, err)
}

// hostedKind is a control plane without machines; it listens where the Cluster says unless told otherwise itself.
const hostedKind = "HostedControlPlane"

// kind of the objects that the controller reconciles.
const kind = "LocalCluster"

func hosted(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.Kind == hostedKind && ref.APIGroup == controlplanev1.GroupVersion.Group
}

// needsAddress reports whether a control plane listens at an address that it has to be told.
func needsAddress(p *controlplanev1.HostedControlPlane) bool {
	return p.Spec.Backend.Simulated == nil && !p.Spec.ControlPlaneEndpoint.IsValid()
}

// ownerName returns the name of the Cluster that owns the object, empty if none does.
func ownerName(o metav1.Object) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == "Cluster" && groupOf(ref.APIVersion) == clusterv1.GroupVersion.Group {
			return ref.Name
		}
	}
	return ""
}

// ranges returns the ranges of Pods and Services. Those that cannot be read are left out: the webhook of Clusters
// refuses them.
func (s Snapshot) ranges() []netip.Prefix {
	if s.Cluster == nil {
		return nil
	}
	var out []netip.Prefix
	n := s.Cluster.Spec.ClusterNetwork
	for _, text := range append(append([]string{}, n.Pods.CIDRBlocks...), n.Services.CIDRBlocks...) {
		if p, err := netip.ParsePrefix(text); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}
