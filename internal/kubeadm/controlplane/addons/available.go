package addons

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
)

// IsPending reports whether CoreDNS is known not to be available yet.
func IsPending(f KubeadmState) bool { return isObserved(f.DNS) && !isAvailable(f.DNS) }

// AvailableCondition returns the condition about the availability of CoreDNS. It is absent if CoreDNS does not exist, or if
// no controller of the workload cluster has observed its Deployment, as in simulated clusters.
func AvailableCondition(f KubeadmState) condition.Result {
	switch {
	case !isObserved(f.DNS):
		return condition.Absent()
	case isAvailable(f.DNS):
		return condition.True("Available")
	}
	return condition.False("NotAvailable", fmt.Sprintf("Deployment coredns of the workload cluster has %d of %d available Pods: names of Services are not resolved until one is; "+
		"they need a network add-on, and a Node that accepts them", f.DNS.Status.AvailableReplicas, ptr.Deref(f.DNS.Spec.Replicas, 1)))
}

func isObserved(d *appsv1.Deployment) bool { return d != nil && d.Status.ObservedGeneration > 0 }

func isAvailable(d *appsv1.Deployment) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue && d.Status.AvailableReplicas > 0
		}
	}
	return false
}
