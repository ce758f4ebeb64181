package addons

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
)

// IsPending reports whether CoreDNS is not available yet. isNew is true soon after the control plane was initialized.
// Later, a Deployment that no controller observes is not waited for, as in simulated clusters of earlier builds.
func IsPending(f KubeadmState, isNew bool) bool {
	return f.DNS != nil && ptr.Deref(f.DNS.Spec.Replicas, 1) > 0 && !isAvailable(f.DNS) && (isNew || isObserved(f.DNS))
}

// AvailableCondition returns the condition about the availability of CoreDNS; isNew as in [IsPending]. It is absent if
// CoreDNS does not exist or was scaled to zero by a user, or if no controller of the workload cluster observes its
// Deployment. The KubeadmControlPlane controller calls it for the status.
func AvailableCondition(f KubeadmState, isNew bool) condition.Result {
	switch {
	case f.DNS != nil && isAvailable(f.DNS):
		return condition.True("Available")
	case !IsPending(f, isNew):
		return condition.Absent()
	case !isObserved(f.DNS):
		return condition.Unknown("NotYetKnown", "Waiting for the controllers of the workload cluster to observe Deployment coredns")
	}
	return condition.False("NotAvailable", fmt.Sprintf("Deployment coredns of the workload cluster has %d of %d available Pods: names of Services are not resolved until one is; "+
		"they need a network add-on, and a Node that accepts them", f.DNS.Status.AvailableReplicas, ptr.Deref(f.DNS.Spec.Replicas, 1)))
}

func isObserved(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration > 0 }

func isAvailable(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue && d.Status.AvailableReplicas > 0
		}
	}
	return false
}
