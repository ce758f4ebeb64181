package cluster

import (
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// noController is the reason of ControlPlaneInitialized and ControlPlaneAvailable if no provider reconciles the
	// control plane, because the built-in provider of its kind may be disabled.
	noController = "NoController"
	// otherControllerGrace is how long another provider has to reconcile a new control plane before noController is
	// reported.
	otherControllerGrace = 10 * time.Second
)

// unsupported reports whether the control plane is a KubeadmControlPlane that no provider has reconciled, and the
// remaining time before the conditions report that, 0 if it has passed. Another provider of KubeadmControlPlanes may
// run beside this program; its controller first writes a finalizer, then a status. [decide] schedules a reconciliation
// for the end of that time, and unsupportedMessage reports it in conditions.
func unsupported(s snapshot) (time.Duration, bool) {
	if s.ControlPlane.Presence() != contract.Found || ptr.Deref(s.Cluster.Status.Initialization.ControlPlaneInitialized, false) {
		return 0, false
	}
	o := s.ControlPlane.Object
	status, _ := o.Object["status"].(map[string]any)
	if kind := o.GroupVersionKind(); kind.Group != controlplanev1.GroupVersion.Group || kind.Kind != "KubeadmControlPlane" ||
		len(o.GetFinalizers())+len(status) > 0 {
		return 0, false
	}
	return max(0, otherControllerGrace-s.Now.Sub(o.GetCreationTimestamp().Time)), true
}

// unsupportedMessage returns instructions for an unsupported control plane, or an empty string if it is supported
// or may still be reconciled. The conditions ControlPlaneAvailable and ControlPlaneInitialized show it.
func unsupportedMessage(s snapshot) string {
	left, is := unsupported(s)
	if !is || left > 0 {
		return ""
	}
	return fmt.Sprintf("Nothing has reconciled KubeadmControlPlane %s: run the provider control-plane-kubeadm, or another provider of KubeadmControlPlanes",
		s.ControlPlane.GetName())
}
