package cluster

import (
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"

	"github.com/slipwayhq/slipway/sdk/contract"
)

const (
	// noController is the reason of ControlPlaneInitialized and ControlPlaneAvailable where the control plane is of a kind whose
	// provider may be switched off here, and no other provider has reconciled it.
	noController = "NoController"
	// otherControllerGrace is how long another provider has to reconcile a new control plane before that is said.
	otherControllerGrace = 10 * time.Second
)

// unsupported reports whether the control plane is a KubeadmControlPlane that nothing has reconciled so far, and after how long
// it counts as one that nothing will reconcile; 0: it does. A provider of KubeadmControlPlanes may run beside this program: the
// first thing that its controller writes is a finalizer, then status.
func unsupported(s Snapshot) (time.Duration, bool) {
	if s.ControlPlane.Presence() != contract.Found || isTrue(s.Cluster.Status.Initialization.ControlPlaneInitialized) {
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

// unsupportedMessage says what to do about an unsupported control plane; empty: it is none, or may still be reconciled.
func unsupportedMessage(s Snapshot) string {
	left, is := unsupported(s)
	if !is || left > 0 {
		return ""
	}
	return fmt.Sprintf("Nothing has reconciled KubeadmControlPlane %s: run the provider control-plane-kubeadm, or another provider of KubeadmControlPlanes",
		s.ControlPlane.GetName())
}
