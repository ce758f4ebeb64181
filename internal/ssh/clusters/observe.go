package clusters

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/ssh/inventory"
)

// snapshot is the input of decide.
type snapshot struct {
	Object *infrav1.SSHCluster
	// Cluster that owns the object. Nil if it is not in the cache yet.
	Cluster *clusterv1.Cluster
	// HostedControlPlane of the Cluster. Nil if there is none, or one of another kind.
	HostedControlPlane *controlplanev1.HostedControlPlane
	// FailureDomains of the hosts that are offered to the namespace, sorted.
	FailureDomains []string
	// Taken is the reason why another object has the virtual IP address. Empty: none has.
	Taken string
	// Members are the control plane machines whose hosts are or were prepared, the oldest first. The function isInitial
	// relies on this order.
	Members []member
	// Unresolved are the control plane machines that are nodes, but whose hosts are unknown, as after a restore, and the members
	// whose hosts have no IP address of the node.
	Unresolved []string
	// Policy is the operator's configuration.
	Policy policy.Configuration
	Now    time.Time
}

// member is a control plane machine whose host can hold the virtual IP address.
type member struct {
	// Name of the SSHMachine, and the claim of its host.
	Name, ClaimID string
	Host          *infrav1.SSHHost
	// Prepared is set if the host is prepared now. It remains a member if it cannot be reached, because it may run still.
	Prepared bool
	// Bootstrapping is set if the machine has bootstrap data.
	Bootstrapping bool
	// Leaving is set if the Machine is being deleted, and Released if its host is being cleaned.
	Leaving, Released bool
	// State of the host. Nil: it has to be read.
	State *memberState
}

// observe reads the snapshot. The driver (package reconciler) calls it at the start of each reconciliation.
func (c *controller) observe(ctx context.Context, o *infrav1.SSHCluster) (snapshot, error) {
	s := snapshot{Object: o, Policy: c.Policy, Now: c.now()}
	var err error
	if s.Cluster, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, ownerName(o), &clusterv1.Cluster{}); err != nil {
		return s, err
	}
	if s.Cluster != nil && isHosted(s.Cluster.Spec.ControlPlaneRef) && !c.noHosted {
		s.HostedControlPlane, err = infrastructure.ReadObject(ctx, c.client, o.Namespace, s.Cluster.Spec.ControlPlaneRef.Name, &controlplanev1.HostedControlPlane{})
		if err != nil {
			return s, err
		}
	}
	request, hosts, err := inventory.Read(ctx, c.client, o.Namespace)
	if err != nil {
		return s, err
	}
	for _, h := range request.Matching(hosts) {
		if d := h.Spec.FailureDomain; d != "" && !slices.Contains(s.FailureDomains, d) {
			s.FailureDomains = append(s.FailureDomains, d)
		}
	}
	slices.Sort(s.FailureDomains)
	if o.Spec.VirtualIP == "" || s.Cluster == nil {
		return s, nil
	}
	if s.Taken, err = c.takenBy(ctx, o, hosts); err != nil {
		return s, err
	}
	return s, c.readMembers(ctx, &s)
}

// hostedKind is a control plane without machines, kubeadmKind one on machines. Only the first can provide its own endpoint.
const hostedKind, kubeadmKind = "HostedControlPlane", "KubeadmControlPlane"

func isHosted(ref clusterv1.ContractVersionedObjectReference) bool {
	return ref.Kind == hostedKind && ref.APIGroup == controlplanev1.GroupVersion.Group
}

// takenBy returns which other object has the virtual IP address. Of two clusters, the older one gets it. The text discloses
// nothing about objects of other namespaces.
func (c *controller) takenBy(ctx context.Context, o *infrav1.SSHCluster, hosts []*infrav1.SSHHost) (string, error) {
	address := o.Spec.VirtualIP
	for _, h := range hosts {
		if isSame(address, h.Spec.Address) || isSame(address, inventory.NodeAddress(h)) || h.Spec.Jump != nil && isSame(address, h.Spec.Jump.Address) {
			return "a host", nil
		}
	}
	list := &infrav1.SSHClusterList{}
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing SSHClusters: %w", err)
	}
	for i := range list.Items {
		other := &list.Items[i]
		if !isBefore(other, o) {
			continue
		}
		if uses, err := c.uses(ctx, other, address); uses || err != nil {
			return "another cluster", err
		}
	}
	return "", nil
}

// uses reports whether an SSHCluster uses an address, or will. One that no Cluster refers to, or that may not have the address, does
// not count, because its users could keep addresses from all others with it.
func (c *controller) uses(ctx context.Context, o *infrav1.SSHCluster, address string) (bool, error) {
	isProvisioned, isVirtual := ptr.Deref(o.Status.Initialization.Provisioned, false), isSame(address, o.Spec.VirtualIP)
	a, err := netip.ParseAddr(address)
	switch {
	case !isVirtual && !isSame(address, o.Spec.ControlPlaneEndpoint.Host):
		return false, nil
	case isVirtual && isProvisioned:
		return true, nil // its hosts hold the address even if the configuration became stricter
	case err != nil || c.Policy.DeniedVirtualIP(o.Namespace, a) != "":
		return false, nil
	case isProvisioned:
		return true, nil
	}
	owner, err := infrastructure.ReadObject(ctx, c.client, o.Namespace, ownerName(o), &clusterv1.Cluster{})
	if err != nil || owner == nil {
		return false, err
	}
	ref := owner.Spec.InfrastructureRef
	return ref.Kind == kind && ref.APIGroup == infrav1.GroupVersion.Group && ref.Name == o.Name, nil
}

// isSame reports whether a text is an address, in any of its forms.
func isSame(address, text string) bool {
	a, err := netip.ParseAddr(address)
	b, other := netip.ParseAddr(text)
	return err == nil && other == nil && a.Unmap() == b.Unmap()
}

// isBefore reports whether an SSHCluster has the address rather than another one: a provisioned one, or else the older one.
func isBefore(a, b *infrav1.SSHCluster) bool {
	x, y := ptr.Deref(a.Status.Initialization.Provisioned, false), ptr.Deref(b.Status.Initialization.Provisioned, false)
	switch {
	case a.Namespace == b.Namespace && a.Name == b.Name:
		return false
	case x != y:
		return x
	case !a.CreationTimestamp.Equal(&b.CreationTimestamp):
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}

// readMembers reads the control plane machines of the Cluster whose hosts are prepared, and those that are members already.
func (c *controller) readMembers(ctx context.Context, s *snapshot) error {
	machines := &clusterv1.MachineList{}
	err := c.client.List(ctx, machines, client.InNamespace(s.Object.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: s.Cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing the control plane Machines: %w", err)
	}
	items := slices.Clone(machines.Items)
	slices.SortFunc(items, func(a, b clusterv1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range items {
		if ref := items[i].Spec.InfrastructureRef; ref.Kind != machineKind || ref.APIGroup != infrav1.GroupVersion.Group || len(s.Members) >= maxMembers {
			continue
		}
		m, err := c.readMember(ctx, s.Object, &items[i])
		if err != nil {
			return err
		}
		switch {
		case m != nil:
			m.State = c.states.get(client.ObjectKeyFromObject(s.Object), *m, s.Now)
			s.Members = append(s.Members, *m)
			if !nodeAddress(m.Host).IsValid() {
				s.Unresolved = append(s.Unresolved, items[i].Name)
			}
		case items[i].Spec.ProviderID != "" && items[i].DeletionTimestamp.IsZero():
			s.Unresolved = append(s.Unresolved, items[i].Name)
		}
	}
	c.states.retain(client.ObjectKeyFromObject(s.Object), s.Members)
	return nil
}

// readMember returns the member of a Machine, nil if its host was never prepared. A member remains one until its host is released,
// whatever its conditions are: a host that is not a peer any more, but runs still, hears nobody and holds the address beside another
// one. The status of an SSHMachine is written by users as well, so that the claim of the host has to be the claim of the machine.
func (c *controller) readMember(ctx context.Context, cluster *infrav1.SSHCluster, m *clusterv1.Machine) (*member, error) {
	o, err := infrastructure.ReadObject(ctx, c.client, m.Namespace, m.Spec.InfrastructureRef.Name, &infrav1.SSHMachine{})
	if err != nil || o == nil || o.Status.HostRef == nil {
		return nil, err
	}
	isPrepared := condition.Set(o.Status.Conditions).IsTrue(infrav1.HostPreparedCondition)
	isMember := slices.ContainsFunc(cluster.Status.VirtualIP.Members, func(m infrav1.SSHVirtualIPMember) bool { return m.Machine == o.Name })
	if !isPrepared && !isMember {
		return nil, nil
	}
	h, err := infrastructure.ReadObject(ctx, c.client, o.Status.HostRef.Namespace, o.Status.HostRef.Name, &infrav1.SSHHost{})
	if err != nil || h == nil || !inventory.HasClaim(h, o) || !inventory.IsConfirmed(h) {
		return nil, err
	}
	return &member{
		Name: o.Name, ClaimID: o.Spec.ClaimID, Host: h, Prepared: isPrepared, Bootstrapping: m.Spec.Bootstrap.DataSecretName != nil,
		Leaving: !m.DeletionTimestamp.IsZero(), Released: !o.DeletionTimestamp.IsZero() || inventory.IsReleased(h.Status.Claim),
	}, nil
}

// machineKind is the kind of the machines of this provider.
const machineKind = "SSHMachine"

// maxMembers limits the hosts that can hold a virtual IP address.
const maxMembers = 20
