package machines

import (
	"regexp"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// NodeLabels returns the labels of a Machine, or of a Machine template, that are synchronized to its Node: labels with
// the prefix node-role.kubernetes.io, labels in the domains node-restriction.kubernetes.io and
// node.cluster.x-k8s.io and their subdomains, and labels that match one of the expressions. The domains are defined by
// Cluster API; the expressions are a setting of the manager. The Machine controller uses the labels through
// [NodeMetadata], the MachinePool controller calls NodeLabels for pools without Machines. The result is never nil.
func NodeLabels(labels map[string]string, also ...*regexp.Regexp) map[string]string {
	return filterByKey(labels, func(key, domain string) bool {
		return domain == clusterv1.NodeRoleLabelPrefix || within(domain, clusterv1.NodeRestrictionLabelDomain) ||
			within(domain, clusterv1.ManagedNodeLabelDomain) || matches(also, key)
	})
}

// filterAnnotations returns the annotations that are synchronized to the Node: annotations in the domain
// node.cluster.x-k8s.io and its subdomains, and annotations that match one of the expressions. [NodeMetadata.Sync]
// calls it.
func filterAnnotations(annotations map[string]string, also ...*regexp.Regexp) map[string]string {
	return filterByKey(annotations, func(key, domain string) bool {
		return within(domain, clusterv1.ManagedNodeAnnotationDomain) || matches(also, key)
	})
}

func filterByKey(from map[string]string, belongs func(key, domain string) bool) map[string]string {
	out := map[string]string{}
	for key, value := range from {
		domain, _, _ := strings.Cut(key, "/")
		if belongs(key, domain) {
			out[key] = value
		}
	}
	return out
}

func within(domain, of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }

func matches(expressions []*regexp.Regexp, key string) bool {
	return slices.ContainsFunc(expressions, func(e *regexp.Regexp) bool { return e.MatchString(key) })
}
