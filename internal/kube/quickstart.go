// Package quickstart suggests replacements for the Docker kinds in the quick start of the Cluster API book, whose
// provider is rarely installed ([QuickstartAlternative]).
package kube

import "strings"

// QuickstartAlternative returns the end of a message about a kind (or its plural) that is not installed; empty if there is no
// replacement.
func QuickstartAlternative(kind, group string) string {
	if group != "infrastructure.cluster.x-k8s.io" || !strings.HasPrefix(strings.ToLower(kind), "docker") {
		return ""
	}
	return ", or use the Local kinds, which make the same of containers on this host (docs/clusterctl.md)"
}
