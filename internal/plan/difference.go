package plan

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Difference returns the object changes between two snapshots of the same management cluster, in the form of a plan. A
// run of `slipway plan` compares the copy before and after the change with it. It is exported for the tests of package
// cli/plan, which compare a plan with the changes in a real cluster.
func Difference(before, after []*unstructured.Unstructured) []ObjectChange {
	was, is := map[id]*unstructured.Unstructured{}, map[id]*unstructured.Unstructured{}
	for _, u := range before {
		was[idOf(u)] = u
	}
	out := []ObjectChange{}
	for _, u := range after {
		is[idOf(u)] = u
		if c, changed := changeOf(was[idOf(u)], u); changed {
			out = append(out, c)
		}
	}
	for key, u := range was {
		if is[key] == nil || is[key].GetUID() != u.GetUID() {
			out = append(out, ObjectChange{Object: objectOf(u), Cluster: clusterOf(u), Owner: controllerOf(u), Verb: Delete})
		}
	}
	slices.SortFunc(out, func(a, b ObjectChange) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), compareObjects(a.Object, b.Object), strings.Compare(string(a.Verb), string(b.Verb)))
	})
	return out
}
