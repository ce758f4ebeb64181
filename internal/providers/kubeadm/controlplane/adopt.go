package controlplane

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/ownership"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/rollout"
)

// decideAdoption adopts control plane Machines of the Cluster, and reports whether there are any: nothing else is done before all
// have an owner, since one that is not counted would be replaced.
func decideAdoption(s Snapshot, p *loop.Plan) bool {
	waits := false
	for _, m := range s.Adoptable {
		if problem := rollout.NotAdoptable(s.Plane, m); problem != "" {
			p.WaitFor(waitForAdoption, "Machine %s cannot be adopted: %s", m.Name, problem).For(machineKind, m.Name).ForPerson()
		} else {
			p.Do(action.Adopt{Machine: m.Name})
			p.WaitFor(waitForAdoption, "Adopting Machine %s", m.Name).For(machineKind, m.Name).ToChange("metadata.ownerReferences")
		}
		waits = true
	}
	return waits
}

// adopt reads past the cache that the control plane still exists, and is conditional on the Machine's resourceVersion.
func (c *Controller) adopt(ctx context.Context, s Snapshot, a action.Adopt) error {
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

// adoptionEvents tell of Machines that cannot be adopted, once.
func adoptionEvents(s Snapshot) []loop.Event {
	var out []loop.Event
	for _, m := range s.Adoptable {
		if problem := rollout.NotAdoptable(s.Plane, m); problem != "" && metav1.GetControllerOfNoCopy(m) == nil {
			out = append(out, loop.Warning("AdoptionFailed", "Machine %s cannot be adopted: %s", m.Name, problem))
		}
	}
	return out
}
