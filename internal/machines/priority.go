package machines

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// DeletionPriority orders the surplus Machines of a MachineSet for deletion; the lowest value is deleted first. The
// MachineDeployment controller uses it to predict which Machines a MachineSet deletes.
type DeletionPriority int

// The priorities.
const (
	// Deleting Machines are already being deleted.
	Deleting DeletionPriority = iota
	// Marked Machines have the annotation cluster.x-k8s.io/delete-machine, which a user has set.
	Marked
	// priorityUpdating Machines are being updated in place; the update is lost in any case.
	priorityUpdating
	// priorityUnhealthy Machines: see [IsUnhealthy].
	priorityUnhealthy
	// priorityHealthy Machines are all others.
	priorityHealthy
)

// PriorityOf returns the priority of a Machine; the first case that applies determines it. The MachineDeployment
// controller calls it, too.
func PriorityOf(m OwnedMachine) DeletionPriority {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	switch {
	case m.Deleted:
		return Deleting
	case marked:
		return Marked
	case updating:
		return priorityUpdating
	case IsUnhealthy(m.Machine):
		return priorityUnhealthy
	}
	return priorityHealthy
}

// IsUnhealthy reports whether a Machine does not work: it has no Node, its Node is unhealthy, or a health check
// failed. Unknown conditions do not count as unhealthy.
func IsUnhealthy(m *clusterv1.Machine) bool {
	set := condition.Set(m.Status.Conditions)
	return !m.Status.NodeRef.IsDefined() || set.IsFalse(clusterv1.MachineNodeHealthyCondition) ||
		set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition)
}

// OrderText describes for messages in which order Machines with the same priority are deleted. The MachineSet
// controller writes it into the action.
func OrderText(order clusterv1.MachineSetDeletionOrder) string {
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		return "the newest first"
	case clusterv1.OldestMachineSetDeletionOrder:
		return "the oldest first"
	}
	return "in random order"
}

// ByDeletionPriority compares Machines by priority, then by the given order, then by name. The random order uses a
// hash of the UID, so that every reconciliation, also of another manager, selects the same Machines. The MachineSet
// controller passes it to [OwnedMachines.DeleteCandidates].
func ByDeletionPriority(order clusterv1.MachineSetDeletionOrder) func(a, b OwnedMachine) int {
	return func(a, b OwnedMachine) int {
		return cmp.Or(cmp.Compare(PriorityOf(a), PriorityOf(b)), byOrder(a, b, order), strings.Compare(a.Name, b.Name))
	}
}

func byOrder(a, b OwnedMachine, order clusterv1.MachineSetDeletionOrder) int {
	switch order {
	case clusterv1.NewestMachineSetDeletionOrder:
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	case clusterv1.OldestMachineSetDeletionOrder:
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}
	return cmp.Compare(randomKey(a), randomKey(b))
}

func randomKey(m OwnedMachine) uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(m.UID)) // never fails
	return sum.Sum64()
}

// DeleteCandidates returns the sorted names of the Machines to delete to reduce the number of Machines by n, selected
// by compare. Machines that are already being deleted count toward n. The MachineSet controller calls it when it scales
// down.
func (ms OwnedMachines) DeleteCandidates(n int, compare func(a, b OwnedMachine) int) []string {
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
