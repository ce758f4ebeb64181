package controlplane

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
	"github.com/slipwayhq/slipway/internal/version"
)

// adopt makes the control plane the controller of a Machine, if [decideAdoption] planned it. It first checks against
// the API server that the control plane still exists. The patch is conditional on the Machine's resourceVersion. act
// calls it.
func (c *controller) adopt(ctx context.Context, s snapshot, a adopt) error {
	live := &controlplanev1.KubeadmControlPlane{}
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(s.ControlPlane), live); err != nil {
		return fmt.Errorf("reading KubeadmControlPlane %s: %w", s.ControlPlane.Name, err)
	}
	if live.UID != s.ControlPlane.UID || !live.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, m := range s.Adoptable {
		if m.Name != a.Machine {
			continue
		}
		return c.writer.Patch(ctx, m, func(o client.Object) {
			ownership.AddOwner(o, ownerReference(s.ControlPlane))
		})
	}
	return nil
}

// notAdoptable returns the reason why a control plane cannot adopt a Machine, or the empty string.
func notAdoptable(plane *controlplanev1.KubeadmControlPlane, m *clusterv1.Machine) string {
	if ref := m.Spec.Bootstrap.ConfigRef; ref.Kind != "KubeadmConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group {
		return "its bootstrap config is not a KubeadmConfig"
	}
	have, err := version.Parse(m.Spec.Version)
	if err != nil {
		return fmt.Sprintf("its version %q is not a semantic version", m.Spec.Version)
	}
	want, err := version.Parse(plane.Spec.Version)
	if err != nil || have.Major != want.Major || have.Minor+1 < want.Minor || want.Minor+1 < have.Minor {
		return fmt.Sprintf("its version %s is more than one minor version away from %s", m.Spec.Version, plane.Spec.Version)
	}
	return ""
}

// decideAdoption adopts Machines without a controller, and reports whether there are any. All other steps wait until
// they have an owner, because a Machine that is not counted would be replaced. [decide] calls it.
func decideAdoption(plane *controlplanev1.KubeadmControlPlane, adoptable []*clusterv1.Machine, p *reconciler.Plan) bool {
	for _, m := range adoptable {
		if problem := notAdoptable(plane, m); problem != "" {
			p.WaitFor(waitForAdoption, "Machine %s cannot be adopted: %s", m.Name, problem).For("Machine", m.Name).UntilUserActs()
		} else {
			p.Do(adopt{Machine: m.Name})
			p.WaitFor(waitForAdoption, "Adopting Machine %s", m.Name).For("Machine", m.Name).ToChange("metadata.ownerReferences")
		}
	}
	return len(adoptable) > 0
}

const waitForAdoption = "AdoptingMachines"

// adoptionEvents returns the events about adopted Machines. [report] calls it.
func adoptionEvents(plane *controlplanev1.KubeadmControlPlane, adoptable []*clusterv1.Machine) []reconciler.Event {
	var out []reconciler.Event
	for _, m := range adoptable {
		if problem := notAdoptable(plane, m); problem != "" && metav1.GetControllerOfNoCopy(m) == nil {
			out = append(out, reconciler.Warning("AdoptionFailed", "Machine %s cannot be adopted: %s", m.Name, problem))
		}
	}
	return out
}
