package fleet

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rank orders rows by trouble.
type rank struct {
	health    Health
	needsUser bool
	since     *metav1.Time
}

// compare orders by health, from Problem to Healthy, then rows that need a user, then the oldest cause.
func (a rank) compare(b rank) int {
	return cmp.Or(
		cmp.Compare(slices.Index(AllHealth(), a.health), slices.Index(AllHealth(), b.health)),
		compareBools(b.needsUser, a.needsUser),
		compareTimes(a.since, b.since),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// compareTimes orders the earlier first. An unknown time is last.
func compareTimes(a, b *metav1.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Compare(b.Time)
}

// CompareClusters orders clusters by namespace and name.
func CompareClusters(a, b Cluster) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// CompareClustersByTrouble orders clusters with a problem first, and those that need a user before the others. `slipway
// get clusters` and the page sort by it.
func CompareClustersByTrouble(a, b Cluster) int {
	return cmp.Or(rank{a.Health, a.NeedsUser, a.Since}.compare(rank{b.Health, b.NeedsUser, b.Since}), CompareClusters(a, b))
}

// CompareMachines orders Machines by namespace, cluster and name.
func CompareMachines(a, b Machine) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
}

// CompareMachinesByTrouble orders Machines with a problem first, and those that need a user before the others. `slipway
// get machines` sorts by it.
func CompareMachinesByTrouble(a, b Machine) int {
	return cmp.Or(rank{a.Health, a.NeedsUser, a.Since}.compare(rank{b.Health, b.NeedsUser, b.Since}), CompareMachines(a, b))
}

// CompareNodes orders Nodes by namespace, cluster and name.
func CompareNodes(a, b Node) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
}

// CompareNodesByTrouble orders Nodes with a problem first. `slipway get nodes` sorts by it.
func CompareNodesByTrouble(a, b Node) int {
	return cmp.Or(rank{health: a.Health, since: a.Since}.compare(rank{health: b.Health, since: b.Since}), CompareNodes(a, b))
}
