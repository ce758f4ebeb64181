package rootcause

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Beneath returns an object and the objects beneath it, by references and owners, sorted. The number is limited; the graph
// records that the limit was reached. `slipway explain` lists the problems of these objects.
func Beneath(g Graph, of Ref) []Ref {
	seen := map[Ref]bool{of: true}
	queue := []Ref{of}
	isComplete := true
	for next := 0; next < len(queue) && isComplete; next++ {
		u, found := g.Get(queue[next])
		if !found {
			continue
		}
		o := newObject(queue[next], u)
		for _, ref := range slices.Concat(o.references(), g.Owned(o.ref)) {
			isClass := ref.Kind == "ClusterClass" || isStatusless(ref.Kind)
			switch {
			case seen[ref] || isClass || o.isBelow(ref):
			case len(queue) >= maxNodes:
				isComplete = false
			default:
				seen[ref] = true
				queue = append(queue, ref)
			}
		}
	}
	if !isComplete {
		g.ReachLimit(of, fmt.Sprintf("Only %d objects beneath the object were considered", maxNodes))
	}
	slices.SortFunc(queue, Ref.compare)
	return queue
}

// Action is what a controller will do with an object at a known time.
type Action struct {
	Object Ref    `json:"object"`
	Remedy Remedy `json:"remedy"`
}

// Upcoming returns the remediations of MachineHealthChecks that are due for the Machines of a list, the next one first.
// `slipway explain` prints them.
func Upcoming(g Graph, of []Ref, now time.Time) (out []Action) {
	s := newSearch(g, now)
	for _, ref := range of {
		if ref.Group != clusterv1.GroupVersion.Group || ref.Kind != "Machine" {
			continue
		}
		u, found := g.Get(ref)
		if !found {
			continue
		}
		if due := s.remediationOf(newObject(ref, u)); due != nil {
			out = append(out, Action{ref, s.remediationRemedy(due)})
		}
	}
	slices.SortStableFunc(out, func(a, b Action) int { return cmp.Or(a.Remedy.At.Compare(b.Remedy.At), a.Object.compare(b.Object)) })
	return out
}
