package inventory

import (
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/policy"
)

// Namespace is a namespace with the UID and the labels of its Namespace object.
type Namespace struct {
	Name   string
	UID    types.UID
	Labels map[string]string
}

// IsOffered reports whether SSHMachines of the namespace may claim the host. An invalid selector selects nothing.
// [Request.Choose] and the SSHMachine controller check it.
func IsOffered(h *infrav1.SSHHost, n Namespace) bool {
	if h.Spec.OfferedTo == nil {
		return h.Namespace == n.Name
	}
	selector, err := metav1.LabelSelectorAsSelector(h.Spec.OfferedTo)
	return err == nil && selector.Matches(labels.Set(n.Labels))
}

// isReusable reports whether the namespace may claim the host although another namespace used it before. The users of a
// namespace have the rights of root on a host while they use it.
func isReusable(h *infrav1.SSHHost, n Namespace) bool {
	return LastNamespace(h) == "" || WasUsedBy(h, n) || h.Spec.Reuse == infrav1.SSHReuseAny
}

// WasUsedBy reports whether the namespace used the host last. A namespace that was deleted and created again may have other
// users, so the UID has to be the same. A move and a restore lose the status with the UID, because all namespaces have other
// UIDs there; then the name decides. The SSHMachine controller adopts no other host.
func WasUsedBy(h *infrav1.SSHHost, n Namespace) bool {
	uid := h.Status.LastNamespaceUID
	return LastNamespace(h) == n.Name && (uid == "" || uid == string(n.UID))
}

// LastNamespace returns the namespace that used the host last, empty if none did. It is stored in an annotation, because a
// move or a restore loses the status. The SSHHost controller and `slipway hosts reinstalled` read it.
func LastNamespace(h *infrav1.SSHHost) string { return h.Annotations[infrav1.LastNamespaceAnnotation] }

// IsReleased reports whether the machine of a claim does not need the host any more.
func IsReleased(c *infrav1.SSHHostClaim) bool { return c != nil && ptr.Deref(c.Released, false) }

// IsConfirmed reports whether the claim of a host was recorded on it. The SSHMachine uses the host only then.
func IsConfirmed(h *infrav1.SSHHost) bool {
	c := h.Status.Claim
	return c != nil && h.Status.ConfirmedClaimID == c.ClaimID
}

// Denied returns why the operator's configuration denies connections to the host, or an empty string if it allows them.
// The jump host is checked like the host. The SSHHost controller reports it, and [Target] enforces it.
func Denied(h *infrav1.SSHHost, p policy.Configuration) string {
	if message := p.DeniedHostNamespace(h.Namespace); message != "" {
		return message
	}
	if message := deniedAddress(h.Spec.SSHServer, p); message != "" || h.Spec.Jump == nil {
		return message
	}
	return deniedAddress(*h.Spec.Jump, p)
}

// deniedAddress passes an invalid address for a DNS name, whose addresses are unknown.
func deniedAddress(s infrav1.SSHServer, p policy.Configuration) string {
	address, _ := netip.ParseAddr(s.Address)
	return p.DeniedHost(s.Address, address)
}
