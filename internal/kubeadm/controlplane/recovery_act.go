package controlplane

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// recoveryTarget contains the objects of a recovery action.
type recoveryTarget struct {
	ControlPlane client.Object
	// Machine of the action, and its infrastructure machine, or nil if they do not exist.
	Machine *clusterv1.Machine
	Infra   client.Object
	// Nodes of the workload cluster by name, and its client.
	Nodes    map[string]*corev1.Node
	Workload func(ctx context.Context) (client.Client, error)
}

// recoveryActionMachine returns the Machine of a recovery action, or the empty string.
func recoveryActionMachine(do reconciler.Action) string {
	switch a := do.(type) {
	case orderEtcd:
		return a.Machine
	case excludeFromDrain:
		return a.Machine
	case finishRecovery:
		return a.Machine
	}
	return ""
}

// executeRecovery executes a recovery action. All actions are idempotent.
func executeRecovery(ctx context.Context, w *kube.Writer, to recoveryTarget, do reconciler.Action) error {
	switch a := do.(type) {
	case acceptRecovery:
		return w.Patch(ctx, to.ControlPlane, func(o client.Object) { kube.Annotate(o, controlplanev1.RecoverAnnotation, new(a.Request.String())) })
	case orderEtcd:
		if to.Infra == nil {
			return nil
		}
		return w.Patch(ctx, to.Infra, func(o client.Object) { kube.Annotate(o, controlplanev1.EtcdOrderAnnotation, new(a.Order.String())) })
	case excludeFromDrain:
		return w.Patch(ctx, to.Machine, func(o client.Object) {
			kube.Annotate(o, clusterv1.ExcludeNodeDrainingAnnotation, new(""))
			kube.Annotate(o, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, new(""))
		})
	case deleteNode:
		workload, err := to.Workload(ctx)
		if err != nil || to.Nodes[a.Node] == nil {
			return err
		}
		return w.WithClient(workload).DeleteAnyway(ctx, to.Nodes[a.Node])
	case finishRecovery:
		return removeRecovery(ctx, w, to)
	}
	return nil
}

// removeRecovery removes the request last, so that an interrupted cleanup is repeated.
func removeRecovery(ctx context.Context, w *kube.Writer, to recoveryTarget) error {
	if to.Infra != nil {
		if err := w.Patch(ctx, to.Infra, func(o client.Object) {
			kube.Annotate(o, controlplanev1.EtcdOrderAnnotation, nil)
			kube.Annotate(o, controlplanev1.EtcdReportAnnotation, nil)
		}); err != nil {
			return err
		}
	}
	return w.Patch(ctx, to.ControlPlane, func(o client.Object) { kube.Annotate(o, controlplanev1.RecoverAnnotation, nil) })
}
