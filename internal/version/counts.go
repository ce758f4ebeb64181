package version

import (
	"cmp"
	"maps"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// What the API accepts of a version, and how many versions of one object.
const maxVersion, maxVersions = 256, 100

// Counts are numbers of replicas by version. The zero value counts nothing, and cannot be added to.
type Counts map[string]int32

// Add counts n more replicas of a version; those without a version are not counted, nor are those whose version the API could
// not store: Nodes may say anything.
func (c Counts) Add(version string, n int32) {
	if version != "" && len(version) <= maxVersion && n > 0 {
		c[version] += n
	}
}

// Sorted returns the versions from the oldest to the newest; what is no semantic version comes last, by its text. Nil where
// nothing was counted; no more than the API can store.
func (c Counts) Sorted() []clusterv1.StatusVersion {
	var out []clusterv1.StatusVersion
	sorted := slices.SortedFunc(maps.Keys(c), older)
	for _, v := range sorted[:min(len(sorted), maxVersions)] {
		out = append(out, clusterv1.StatusVersion{Version: v, Replicas: c[v]})
	}
	return out
}

// older orders versions. Of two that differ in their build only, the text decides.
func older(a, b string) int {
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
