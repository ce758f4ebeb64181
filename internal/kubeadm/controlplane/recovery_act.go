package controlplane

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// actOnRecovery executes the actions of a recovery from the loss of the etcd quorum, which recovery_decide.go plans.
// act calls it. All of them are idempotent.
func (c *controller) actOnRecovery(ctx context.Context, s snapshot, do reconciler.Action) error {
	switch a := do.(type) {
	case acceptRecovery:
		return c.annotate(ctx, s.ControlPlane, controlplanev1.RecoverAnnotation, new(a.Request.String()))
	case orderEtcd:
		infra := s.Clones.InfrastructureOf(s.named(a.Machine).Machine).Unstructured
		if infra == nil {
			return nil
		}
		return c.annotate(ctx, infra, controlplanev1.EtcdOrderAnnotation, new(a.Order.String()))
	case excludeFromDrain:
		return c.writer.Patch(ctx, s.named(a.Machine).Machine, func(o client.Object) {
			kube.Annotate(o, clusterv1.ExcludeNodeDrainingAnnotation, new(""))
			kube.Annotate(o, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, new(""))
		})
	case deleteNode:
		workload, err := c.workloads.Client(ctx, client.ObjectKeyFromObject(s.Cluster))
		if err != nil || s.Workload.Nodes[a.Node] == nil {
			return err
		}
		return c.writer.WithClient(workload).DeleteAnyway(ctx, s.Workload.Nodes[a.Node])
	case finishRecovery:
		return c.finishRecovery(ctx, s, a)
	}
	return nil
}

// finishRecovery removes the request last, so that an interrupted cleanup is repeated.
func (c *controller) finishRecovery(ctx context.Context, s snapshot, a finishRecovery) error {
	if infra := s.Clones.InfrastructureOf(s.named(a.Machine).Machine).Unstructured; infra != nil {
		if err := c.writer.Patch(ctx, infra, func(o client.Object) {
			kube.Annotate(o, controlplanev1.EtcdOrderAnnotation, nil)
			kube.Annotate(o, controlplanev1.EtcdReportAnnotation, nil)
		}); err != nil {
			return err
		}
	}
	return c.annotate(ctx, s.ControlPlane, controlplanev1.RecoverAnnotation, nil)
}
