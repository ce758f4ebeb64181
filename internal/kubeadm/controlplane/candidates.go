package controlplane

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// isMarked reports whether a user marked the Machine to be deleted first. This file selects the Machine that [scale]
// deletes ([nextToDelete]) and the failure domain of the one that it creates ([domainForNew]).
func (m memberMachine) isMarked() bool {
	_, marked := m.Annotations[clusterv1.DeleteMachineAnnotation]
	return marked
}

// deletionRank returns the rank for deletion. Machines with the lowest rank are deleted first.
func (m memberMachine) deletionRank() int {
	switch {
	case m.isOutdated() && m.isMarked():
		return 0
	case m.isMarked():
		return 1
	case m.isOutdated() && m.Unhealthy != "":
		return 2
	case m.isOutdated():
		return 3
	}
	return 4
}

// deletionReason describes the rank by which a Machine was selected. [scale] writes it into the action.
func (m memberMachine) deletionReason() string {
	return [...]string{"it is outdated and marked for deletion", "it is marked for deletion", "it is outdated and not healthy", "it is outdated", "the oldest"}[m.deletionRank()]
}

// nextToDelete selects the Machine to delete if there are too many. Among the Machines with the lowest rank, it
// selects the oldest one in the failure domain with the most Machines. It returns false if there are no candidates.
//
//	rank 0  outdated, and marked with the annotation cluster.x-k8s.io/delete-machine
//	rank 1  marked
//	rank 2  outdated, and not healthy
//	rank 3  outdated
//	rank 4  any
func nextToDelete(all []memberMachine, cluster *clusterv1.Cluster) (memberMachine, bool) {
	inDomain := map[string]int{}
	for _, c := range all {
		inDomain[domainOf(c.Machine, cluster)]++
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b memberMachine) int {
		return cmp.Or(
			cmp.Compare(a.deletionRank(), b.deletionRank()),
			cmp.Compare(inDomain[domainOf(b.Machine, cluster)], inDomain[domainOf(a.Machine, cluster)]),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			strings.Compare(a.Name, b.Name),
		)
	})
	if len(sorted) == 0 {
		return memberMachine{}, false
	}
	return sorted[0], true
}

// domainForNew returns the failure domain for a new Machine: among the domains for control planes, the one with the
// fewest up-to-date Machines, and among these the one with the fewest Machines. It is empty if the Cluster has none.
// [scale] calls it.
func domainForNew(candidates []memberMachine, cluster *clusterv1.Cluster) string {
	upToDate, total := map[string]int{}, map[string]int{}
	for _, c := range candidates {
		if !c.DeletionTimestamp.IsZero() {
			continue
		}
		total[c.Spec.FailureDomain]++
		if !c.isOutdated() {
			upToDate[c.Spec.FailureDomain]++
		}
	}
	names := domains(cluster)
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(upToDate[a], upToDate[b]), cmp.Compare(total[a], total[b]), strings.Compare(a, b))
	})
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// domains returns the failure domains that the infrastructure provider reports as suitable for control planes.
func domains(cluster *clusterv1.Cluster) []string {
	var out []string
	for _, d := range cluster.Status.FailureDomains {
		if ptr.Deref(d.ControlPlane, false) {
			out = append(out, d.Name)
		}
	}
	return out
}

// domainOf returns the failure domain of a Machine, or the empty string if it is no longer a failure domain for
// control planes.
func domainOf(m *clusterv1.Machine, cluster *clusterv1.Cluster) string {
	if slices.Contains(domains(cluster), m.Spec.FailureDomain) {
		return m.Spec.FailureDomain
	}
	return ""
}
