package machinepool

import (
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// nodeLabels returns those labels that belong on Nodes too (MA-11).
func nodeLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range labels {
		domain, _, _ := strings.Cut(key, "/")
		for _, managed := range []string{clusterv1.NodeRestrictionLabelDomain, clusterv1.ManagedNodeLabelDomain} {
			if domain == managed || strings.HasSuffix(domain, "."+managed) {
				out[key] = value
			}
		}
		if domain == clusterv1.NodeRoleLabelPrefix {
			out[key] = value
		}
	}
	return out
}

func machineNames(machines []clusterv1.Machine) string {
	names := make([]string, 0, len(machines))
	for _, m := range machines {
		names = append(names, m.Name)
	}
	return condition.Names(names)
}
