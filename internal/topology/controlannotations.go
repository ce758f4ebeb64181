package topology

import (
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/conversion"
)

// controlAnnotations returns annotations that control the behavior of a controller for an object, or that controllers
// write themselves. An annotation that gets such an effect, in Cluster API or in Slipway, has to be added here.
func controlAnnotations() []string {
	return []string{
		clusterv1.PausedAnnotation, clusterv1.ManagedByAnnotation, clusterv1.DeleteMachineAnnotation, clusterv1.RemediateMachineAnnotation,
		clusterv1.DisableMachineCreateAnnotation, clusterv1.MachineCertificatesExpiryDateAnnotation, clusterv1.TopologyDryRunAnnotation,
		clusterv1.TemplateClonedFromNameAnnotation, clusterv1.TemplateClonedFromGroupKindAnnotation,
		conversion.DataAnnotation,
		"controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration",
		"controlplane.cluster.x-k8s.io/remediation-for",
		"controlplane.cluster.x-k8s.io/remediation-in-progress",
	}
}

// controlDomains returns domains in which all annotations are of this kind, including subdomains.
func controlDomains() []string {
	return []string{
		"slipway.dev",
		"internal.cluster.x-k8s.io",
		"runtime.cluster.x-k8s.io",
		"clusterctl.cluster.x-k8s.io",
		"crd-migration.cluster.x-k8s.io",
		"machinedeployment.clusters.x-k8s.io",
	}
}

// IsControlAnnotation reports whether an annotation controls the controllers of the object that has it. Metadata in
// spec.topology must not contain such annotations, because it is copied to objects for which the author of the Cluster
// may have no permissions: the webhook of Clusters rejects them, and the topology controller does not copy them.
// Templates of a class may contain them, because their authors may write the objects created from them.
func IsControlAnnotation(annotation string) bool {
	if slices.Contains(controlAnnotations(), annotation) {
		return true
	}
	domain, _, found := strings.Cut(annotation, "/")
	return found && slices.ContainsFunc(controlDomains(), func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// withoutControlAnnotations removes annotations that must not be copied from spec.topology. It is necessary besides
// admission, which rejects them only when they are added. [Draft.Patch] and [Draft.DesiredState] call it for the
// metadata in spec.topology.
func withoutControlAnnotations(annotations map[string]string) map[string]string {
	out := make(map[string]string, len(annotations))
	for name, value := range annotations {
		if !IsControlAnnotation(name) {
			out[name] = value
		}
	}
	return out
}
