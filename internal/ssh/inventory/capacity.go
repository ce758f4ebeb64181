package inventory

import (
	corev1 "k8s.io/api/core/v1"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/infrastructure"
)

// Capacity returns the least capacity of the hosts that match a request, because any of them may become the node. The architecture
// is reported only if all have the same. The controller of SSHMachineTemplates reports it for autoscalers.
func Capacity(r Request, hosts []*infrav1.SSHHost, failureDomain string) infrav1.SSHMachineTemplateStatus {
	var out infrav1.SSHMachineTemplateStatus
	for _, h := range r.Matching(hosts) {
		f := h.Status.Facts
		if h.Status.State == infrav1.SSHHostQuarantined || f.CPUs == 0 || f.MemoryMiB == 0 || failureDomain != "" && failureDomain != h.Spec.FailureDomain {
			continue
		}
		capacity := infrastructure.NodeCapacity(int64(f.CPUs), f.MemoryMiB<<20, f.DiskMiB<<20)
		infrastructure.SubtractReserved(capacity)
		architecture := knownArchitecture(f.Architecture)
		if out.Capacity == nil {
			out.Capacity, out.NodeInfo = capacity, infrav1.NodeInfo{Architecture: architecture, OperatingSystem: "linux"}
			continue
		}
		out.Capacity = least(out.Capacity, capacity)
		if out.NodeInfo.Architecture != architecture {
			out.NodeInfo.Architecture = ""
		}
	}
	return out
}

// knownArchitecture returns an architecture that the API accepts, empty for others, which a host could report.
func knownArchitecture(name string) infrav1.Architecture {
	switch name {
	case "amd64", "arm64", "s390x", "ppc64le":
		return infrav1.Architecture(name)
	}
	return ""
}

// least returns the lower quantity of each resource that is in both lists.
func least(a, b corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range a {
		other, ok := b[name]
		switch {
		case !ok:
		case other.Cmp(quantity) < 0:
			out[name] = other
		default:
			out[name] = quantity
		}
	}
	return out
}
