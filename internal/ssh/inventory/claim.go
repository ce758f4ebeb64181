package inventory

import (
	"context"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/kube"
)

// HasClaim reports whether the claim of the host is the claim of this SSHMachine. A claim is an entry in the status
// of the SSHHost, which users cannot write. The claim ID alone is not enough, because users can write any claim ID into
// an SSHMachine that they create. All controllers of the provider check it before they use a host for an SSHMachine.
func HasClaim(h *infrav1.SSHHost, m *infrav1.SSHMachine) bool {
	c := h.Status.Claim
	return c != nil && m.Spec.ClaimID != "" && c.ClaimID == m.Spec.ClaimID && c.Namespace == m.Namespace && c.Name == m.Name
}

// HasRecord reports whether the record on an unclaimed host is the record of this SSHMachine, as after a restore that lost
// the claim. The SSHMachine controller then adopts the host.
func HasRecord(h *infrav1.SSHHost, m *infrav1.SSHMachine) bool {
	r := h.Status.Record
	return h.Status.Claim == nil && r != nil && m.Spec.ClaimID != "" && r.ClaimID == m.Spec.ClaimID && r.Namespace == m.Namespace && r.Name == m.Name
}

// ProviderID returns the provider ID of the Machine and the Node with a claim ID.
func ProviderID(claimID string) string { return "ssh://" + claimID }

// NewClaim returns the claim of an SSHMachine for a host, with the UID of its Namespace, its Cluster and the address of the
// node. The SSHMachine controller writes it.
func NewClaim(m *infrav1.SSHMachine, namespace types.UID, h *infrav1.SSHHost) infrav1.SSHHostClaim {
	out := infrav1.SSHHostClaim{
		Namespace: m.Namespace, NamespaceUID: string(namespace), Name: m.Name, ClaimID: m.Spec.ClaimID, ClusterName: m.Labels[clusterv1.ClusterNameLabel],
	}
	if h.Spec.NodeAddress == "" {
		out.NodeAddress = NodeAddress(h)
	}
	return out
}

// Claim writes a claim to a host. The error is a conflict if the host has changed since it was read. The SSHMachine
// controller calls it.
func Claim(ctx context.Context, w *kube.Writer, h *infrav1.SSHHost, c infrav1.SSHHostClaim) error {
	if c.PreviousNamespace = LastNamespace(h); c.PreviousNamespace == "" {
		c.FirstUse = ptr.To(true)
	} else {
		c.PreviousNamespaceUID = h.Status.LastNamespaceUID
	}
	return setClaim(ctx, w, h, &c)
}

// Reject releases the claim of a host on which nothing of the machine ran, so that its users never had the rights of
// root on it. The SSHMachine controller calls it for a host that fails its checks.
func Reject(ctx context.Context, w *kube.Writer, h *infrav1.SSHHost) error {
	c := *h.Status.Claim
	c.Released, c.Unused = ptr.To(true), c.FirstUse
	return setClaim(ctx, w, h, &c)
}

// Release marks a claim as released: the controller of SSHHosts cleans the host and then drops the claim. It is the claim of the
// host, or a new one for a host that has only the record of the machine. The SSHMachine controller calls it.
func Release(ctx context.Context, w *kube.Writer, h *infrav1.SSHHost, c infrav1.SSHHostClaim) error {
	if h.Status.Claim != nil {
		c = *h.Status.Claim
	}
	c.Released = ptr.To(true)
	return setClaim(ctx, w, h, &c)
}

// Drop removes the claim of a host that was cleaned or never changed. The namespace in the annotation is corrected first; the claim is
// then removed in the next reconciliation, because the host has changed. The SSHHost and SSHMachine controllers call
// it.
func Drop(ctx context.Context, w *kube.Writer, h *infrav1.SSHHost) error {
	after := WithoutClaim(h)
	if LastNamespace(after) != LastNamespace(h) {
		if err := w.Patch(ctx, h, func(o client.Object) { o.SetAnnotations(after.Annotations) }); err != nil {
			return err
		}
	}
	return w.PatchStatus(ctx, h, func(o client.Object) {
		status := &o.(*infrav1.SSHHost).Status
		status.Claim, status.LastNamespace, status.LastNamespaceUID = nil, after.Status.LastNamespace, after.Status.LastNamespaceUID
	})
}

// WithoutClaim returns a host without its claim. The namespace of a claim that was never recorded on the host has not used it, although
// it was noted before, so that the previous namespace is the last one again. The SSHHost controller computes with it
// the status after a dropped claim.
func WithoutClaim(h *infrav1.SSHHost) *infrav1.SSHHost {
	out, claim := *h, h.Status.Claim
	out.Status.Claim = nil
	isKnown := claim != nil && (claim.PreviousNamespace != "" || ptr.Deref(claim.FirstUse, false))
	if !isKnown || IsConfirmed(h) || LastNamespace(h) != claim.Namespace && LastNamespace(h) != claim.PreviousNamespace {
		return &out
	}
	if LastNamespace(h) != claim.PreviousNamespace {
		out.Annotations = maps.Clone(h.Annotations)
		if out.Annotations[infrav1.LastNamespaceAnnotation] = claim.PreviousNamespace; claim.PreviousNamespace == "" {
			delete(out.Annotations, infrav1.LastNamespaceAnnotation)
		}
	}
	out.Status.LastNamespace, out.Status.LastNamespaceUID = claim.PreviousNamespace, claim.PreviousNamespaceUID
	return &out
}

func setClaim(ctx context.Context, w *kube.Writer, h *infrav1.SSHHost, claim *infrav1.SSHHostClaim) error {
	return w.PatchStatus(ctx, h, func(o client.Object) { o.(*infrav1.SSHHost).Status.Claim = claim })
}

// AmongPeers returns the hosts that the SSHMachines of a cluster have claimed, and the number of those machines that precede one
// of them in the choice of a host: they need the same kind of host, and have claimed none. The SSHMachine controller
// and the simulation of `slipway plan` call it before they choose a host.
func AmongPeers(m *infrav1.SSHMachine, machines []infrav1.SSHMachine, hosts []*infrav1.SSHHost) (claimed []*infrav1.SSHHost, turn int) {
	waits := map[string]*infrav1.SSHMachine{}
	for i := range machines {
		waits[machines[i].Name] = &machines[i]
	}
	inCluster := maps.Clone(waits)
	for _, h := range hosts {
		claim := h.Status.Claim
		if claim == nil || claim.Namespace != m.Namespace || inCluster[claim.Name] == nil {
			continue
		}
		claimed = append(claimed, h)
		delete(waits, claim.Name)
	}
	for name, peer := range waits {
		isEqual := peer.Spec.FailureDomain == m.Spec.FailureDomain && reflect.DeepEqual(peer.Spec.HostSelector, m.Spec.HostSelector)
		if name < m.Name && isEqual && peer.Spec.ClaimID != "" && peer.DeletionTimestamp.IsZero() {
			turn++
		}
	}
	return claimed, turn
}
