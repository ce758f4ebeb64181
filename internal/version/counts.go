package version

import (
	"cmp"
	"maps"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Limits of the API for the length of a version and for the number of versions in a status.
const maxVersion, maxVersions = 256, 100

// Counts maps versions to numbers of replicas, for the field status.versions of Clusters, control planes,
// MachineDeployments, MachineSets and MachinePools. Versions cannot be added to the zero value. Package machines and
// the controllers of Clusters and MachinePools count with it.
type Counts map[string]int32

// Add adds n replicas of a version. It ignores an empty version, and a version longer than the API accepts, because a
// Node may report anything.
func (c Counts) Add(version string, n int32) {
	if version != "" && len(version) <= maxVersion && n > 0 {
		c[version] += n
	}
}

// Sorted returns the versions from the oldest to the newest, at most as many as the API accepts. Versions that are not
// semantic versions come last, sorted as text. The result is nil if nothing was counted.
func (c Counts) Sorted() []clusterv1.StatusVersion {
	var out []clusterv1.StatusVersion
	sorted := slices.SortedFunc(maps.Keys(c), Compare)
	for _, v := range sorted[:min(len(sorted), maxVersions)] {
		out = append(out, clusterv1.StatusVersion{Version: v, Replicas: c[v]})
	}
	return out
}

// Compare orders semantic versions from the oldest to the newest. Versions that differ only in their build metadata are
// ordered as text. Other texts come last, ordered as text.
func Compare(a, b string) int {
	x, errX := parseSemantic(a)
	y, errY := parseSemantic(b)
	switch {
	case errX != nil && errY == nil:
		return 1
	case errX == nil && errY != nil:
		return -1
	case errX == nil:
		return cmp.Or(x.Compare(y), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}
