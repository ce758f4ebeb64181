package controlplane

import (
	"context"
	"fmt"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// adopt first checks against the API server that the control plane still exists. The patch is conditional on the
// Machine's resourceVersion.
func (c *controller) adopt(ctx context.Context, s snapshot, a adopt) error {
	live := &controlplanev1.KubeadmControlPlane{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(s.Plane), live); err != nil {
		return fmt.Errorf("reading KubeadmControlPlane %s: %w", s.Plane.Name, err)
	}
	if live.UID != s.Plane.UID || !live.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, m := range s.Adoptable {
		if m.Name != a.Machine {
			continue
		}
		return c.writer.Patch(ctx, m, func(o client.Object) {
			ownership.Own(o, ownerReference(s.Plane))
		})
	}
	return nil
}
