package rollout

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Candidate is a Machine that could be deleted.
type Candidate struct {
	*clusterv1.Machine
	// Outdated: there are [Reasons] to replace it. Unhealthy: its components or its member of etcd are not healthy.
	Outdated, Unhealthy bool
}

// isMarked reports whether a person asks to delete this Machine first.
func (c Candidate) isMarked() bool {
	_, marked := c.Annotations[clusterv1.DeleteMachineAnnotation]
	return marked
}

// deletionRank says which Machines are deleted first: those of the lowest.
func (c Candidate) deletionRank() int {
	switch {
	case c.Outdated && c.isMarked():
		return 0
	case c.isMarked():
		return 1
	case c.Outdated && c.Unhealthy:
		return 2
	case c.Outdated:
		return 3
	}
	return 4
}

// WhyDeleted says by which of the ranks a Machine was chosen.
func (c Candidate) WhyDeleted() string {
	return [...]string{"it is outdated and marked for deletion", "it is marked for deletion", "it is outdated and not healthy", "it is outdated", "the oldest"}[c.deletionRank()]
}

// NextToDelete chooses the Machine to delete when there is one too many: of those with the lowest rank one in the failure domain with
// the most Machines, the oldest. False: there is none.
//
//	rank 0  outdated, and marked with the annotation cluster.x-k8s.io/delete-machine
//	rank 1  marked
//	rank 2  outdated, and not healthy
//	rank 3  outdated
//	rank 4  any
func NextToDelete(all []Candidate, cluster *clusterv1.Cluster) (Candidate, bool) {
	inDomain := map[string]int{}
	for _, c := range all {
		inDomain[domainOf(c.Machine, cluster)]++
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(a.deletionRank(), b.deletionRank()),
			cmp.Compare(inDomain[domainOf(b.Machine, cluster)], inDomain[domainOf(a.Machine, cluster)]),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			strings.Compare(a.Name, b.Name),
		)
	})
	if len(sorted) == 0 {
		return Candidate{}, false
	}
	return sorted[0], true
}

// DomainForNew is the failure domain of a new Machine: of those for control planes the one with the fewest Machines that are up to
// date and stay, of these the one with the fewest Machines. Empty: the Cluster has none.
func DomainForNew(candidates []Candidate, cluster *clusterv1.Cluster) string {
	upToDate, total := map[string]int{}, map[string]int{}
	for _, c := range candidates {
		if !c.DeletionTimestamp.IsZero() {
			continue
		}
		total[c.Spec.FailureDomain]++
		if !c.Outdated {
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

// domains are the failure domains for control planes.
func domains(cluster *clusterv1.Cluster) []string {
	var out []string
	for _, d := range cluster.Status.FailureDomains {
		if ptr.Deref(d.ControlPlane, false) {
			out = append(out, d.Name)
		}
	}
	return out
}

// domainOf is the failure domain that a Machine counts for: none, where it is not one for control planes any more.
func domainOf(m *clusterv1.Machine, cluster *clusterv1.Cluster) string {
	if slices.Contains(domains(cluster), m.Spec.FailureDomain) {
		return m.Spec.FailureDomain
	}
	return ""
}
