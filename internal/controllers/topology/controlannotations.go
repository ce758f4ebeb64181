package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
)

// release is the action that removes annotations of the control plane that an earlier version of Slipway copied from
// the topology, such as the one that pauses it, when the Cluster is deleted. Otherwise the deletion of the control
// plane would wait for a user who may remove them. decideRelease plans it, and act runs it.
type release struct {
	Object client.Object
	Kind   string
	Names  []string
}

func (a release) String() string {
	return fmt.Sprintf("remove the annotations %s of %s %s: the topology has set them, and its deletion must not wait for them", condition.Names(a.Names), a.Kind, a.Object.GetName())
}

// steering returns the sorted annotations of the topology that control the behavior of the control plane's
// controllers.
func (s snapshot) steering() []string {
	annotations := s.Cluster.Spec.Topology.ControlPlane.Metadata.Annotations
	return slices.DeleteFunc(slices.Sorted(maps.Keys(annotations)), func(name string) bool { return !topology.IsControlAnnotation(name) })
}

// readSteered reads the control plane of a Cluster that is being deleted if the topology may have set such
// annotations. observe calls it.
func (c *controller) readSteered(ctx context.Context, s *snapshot) (err error) {
	if ref := s.Cluster.Spec.ControlPlaneRef; ref.IsDefined() && len(s.steering()) > 0 {
		s.Live.ControlPlane, err = c.read(ctx, s, "", ref, s.Cluster.Namespace)
	}
	return err
}

// decideRelease removes these annotations if the Cluster is being deleted. decideDeletion (lifecycle.go) calls it.
func decideRelease(s snapshot, p *reconciler.Plan) {
	plane := s.Live.ControlPlane
	if plane.Unstructured == nil {
		return
	}
	have, want := plane.GetAnnotations(), s.Cluster.Spec.Topology.ControlPlane.Metadata.Annotations
	names := slices.DeleteFunc(s.steering(), func(name string) bool {
		value, has := have[name]
		return !has || value != want[name]
	})
	if len(names) > 0 {
		p.Do(release{Object: plane.Unstructured, Kind: plane.GetKind(), Names: names})
	}
}

// release removes the annotations; act calls it.
func (c *controller) release(ctx context.Context, a release) error {
	return c.writer.PatchOwned(ctx, a.Object, func(o client.Object) {
		annotations := maps.Clone(o.GetAnnotations())
		for _, name := range a.Names {
			delete(annotations, name)
		}
		o.SetAnnotations(annotations)
	})
}
