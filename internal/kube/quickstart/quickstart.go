// Package quickstart knows the kinds of the quick start of Cluster API's book, whose provider few have installed.
//
// Does: says what takes their place ([Instead]).
//
// Never: reads anything.
//
// Read first: [Instead].
package quickstart

import "strings"

// Instead ends a sentence that says that a kind, or its plural, is not installed; empty: nothing takes its place.
func Instead(kind, group string) string {
	if group != "infrastructure.cluster.x-k8s.io" || !strings.HasPrefix(strings.ToLower(kind), "docker") {
		return ""
	}
	return ", or use the Local kinds, which make the same of containers on this host (docs/clusterctl.md)"
}
