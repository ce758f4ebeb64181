package plan

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// rollouts counts the Machines of each owner, for [Plan].Rollouts. The runLog fills it at the end of a run.
type rollouts map[id]*Rollout

// add counts a Machine that exists at the end, or one that does not. The runLog calls it for each Machine.
func (r rollouts) add(u, before *unstructured.Unstructured, exists bool) {
	if !isKind(u, "Machine") {
		return
	}
	owner := ownerOfMachine(u)
	of := r[owner]
	if of == nil {
		of = &Rollout{
			Object:  Object{APIVersion: clusterv1.GroupVersion.String(), Kind: owner.kind.Kind, Namespace: owner.key.Namespace, Name: owner.key.Name},
			Cluster: clusterOf(u),
		}
		if controller := metav1.GetControllerOf(u); controller != nil && owner.kind.Group != clusterv1.GroupVersion.Group {
			of.APIVersion = controller.APIVersion
		}
		r[owner] = of
	}
	switch {
	case !exists:
		of.Deleted = append(of.Deleted, u.GetName())
	case before == nil || before.GetUID() != u.GetUID():
		of.Created++
	default:
		of.Kept = append(of.Kept, u.GetName())
	}
}

// list returns the owners whose Machines are created or deleted. The runLog calls it at the end of a run.
func (r rollouts) list(steps map[id][]Step) []Rollout {
	var out []Rollout
	for owner, of := range r {
		if of.Created+len(of.Deleted) == 0 {
			continue
		}
		slices.Sort(of.Deleted)
		slices.Sort(of.Kept)
		of.Steps = steps[owner]
		for i := range of.Steps {
			slices.Sort(of.Steps[i].Deleted)
		}
		out = append(out, *of)
	}
	slices.SortFunc(out, func(a, b Rollout) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), compareObjects(a.Object, b.Object))
	})
	return out
}
