package machines

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// DeletionPriority says which Machines are deleted first when there are too many: those of the lowest.
type DeletionPriority int

// The priorities.
const (
	// Deleting: it is being deleted already.
	Deleting DeletionPriority = iota
	// Marked by a person, with the annotation cluster.x-k8s.io/delete-machine.
	Marked
	// Updating: its update in place is lost either way.
	Updating
	// Unhealthy: see [IsUnhealthy].
	Unhealthy
	// Healthy: all others.
	Healthy
)

// PriorityOf returns the deletion priority of a Machine.
func PriorityOf(m Member) DeletionPriority {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	switch {
	case m.Deleted:
		return Deleting
	case marked:
		return Marked
	case updating:
		return Updating
	case IsUnhealthy(m.Machine):
		return Unhealthy
	}
	return Healthy
}

// IsUnhealthy reports whether a Machine does no work: it has no Node, or its Node is not healthy, or a health check failed. What is
// not known is not held against it.
func IsUnhealthy(m *clusterv1.Machine) bool {
	set := condition.Set(m.Status.Conditions)
	return !m.Status.NodeRef.IsDefined() || set.IsFalse(clusterv1.MachineNodeHealthyCondition) ||
		set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition)
}

// OrderText says in which order Machines of the same priority are deleted.
func OrderText(order clusterv1.MachineSetDeletionOrder) string {
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		return "the newest first"
	case clusterv1.OldestMachineSetDeletionOrder:
		return "the oldest first"
	}
	return "in random order"
}

// ByDeletionPriority compares Machines by their priority, within it by an order, then by name. The order random is one by a hash
// of the UID: every reconciliation chooses the same Machines.
func ByDeletionPriority(order clusterv1.MachineSetDeletionOrder) func(a, b Member) int {
	return func(a, b Member) int {
		return cmp.Or(cmp.Compare(PriorityOf(a), PriorityOf(b)), byOrder(a, b, order), strings.Compare(a.Name, b.Name))
	}
}

func byOrder(a, b Member, order clusterv1.MachineSetDeletionOrder) int {
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	case clusterv1.OldestMachineSetDeletionOrder:
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return cmp.Compare(randomKey(a), randomKey(b))
}

func randomKey(m Member) uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(m.UID)) // never fails
	return sum.Sum64()
}

// DeleteCandidates are the names of the Machines to delete so that n fewer are left, the first by compare, sorted. Those that are
// being deleted count among the n.
func (ms Members) DeleteCandidates(n int, compare func(a, b Member) int) []string {
	sorted := slices.SortedFunc(slices.Values(ms), compare)
	var out []string
	for _, m := range sorted[:min(n, len(sorted))] {
		if !m.Deleted {
			out = append(out, m.Name)
		}
	}
	slices.Sort(out)
	return out
}
