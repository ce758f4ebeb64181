package controlplane

import (
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/version"
)

// HasHook reports whether a Machine has the hook of its control plane.
func HasHook(m *clusterv1.Machine) bool {
	_, has := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
	return has
}

// IsReached reports whether the Machine controller waits for the hook.
func IsReached(m *clusterv1.Machine) bool {
	deleting := condition.Set(m.Status.Conditions).Get(clusterv1.DeletingCondition)
	return HasHook(m) && deleting != nil && deleting.Reason == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
}

// IsLast reports whether the hook must be removed after all other hooks. Since v1.31 the kubelet of a control plane
// Machine uses the API server on the same Machine, which stops together with its etcd member.
func IsLast(m *clusterv1.Machine) bool {
	v, err := version.Parse(m.Spec.Version)
	return err != nil || v.Major > 1 || v.Minor >= 31
}

// OtherHooks returns the pre-terminate hooks of other owners.
func OtherHooks(m *clusterv1.Machine) []string {
	var out []string
	for key := range m.Annotations {
		if strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && key != controlplanev1.PreTerminateHookCleanupAnnotation {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}
