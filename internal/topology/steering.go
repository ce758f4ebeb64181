package topology

import (
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// steeringNames are annotations that tell a controller what to do with the object that has them, or that controllers write themselves.
func steeringNames() []string {
	return []string{
		clusterv1.PausedAnnotation, clusterv1.ManagedByAnnotation, clusterv1.DeleteMachineAnnotation, clusterv1.RemediateMachineAnnotation,
		clusterv1.DisableMachineCreateAnnotation, clusterv1.MachineCertificatesExpiryDateAnnotation, clusterv1.TopologyDryRunAnnotation,
		clusterv1.TemplateClonedFromNameAnnotation, clusterv1.TemplateClonedFromGroupKindAnnotation,
		"cluster.x-k8s.io/conversion-data",
		"controlplane.cluster.x-k8s.io/kubeadm-cluster-configuration",
		"controlplane.cluster.x-k8s.io/remediation-for",
		"controlplane.cluster.x-k8s.io/remediation-in-progress",
	}
}

// steeringDomains are domains of which all annotations do; those below them as well.
func steeringDomains() []string {
	return []string{
		"slipway.dev",
		"internal.cluster.x-k8s.io",
		"runtime.cluster.x-k8s.io",
		"clusterctl.cluster.x-k8s.io",
		"crd-migration.cluster.x-k8s.io",
		"machinedeployment.clusters.x-k8s.io",
	}
}

// IsSteering reports whether an annotation steers the controllers of the object that has it. The metadata in spec.topology reaches
// objects that whoever may write the Cluster need not have a right on, so that it does not carry such annotations. Templates of a class
// may: who may write them may write what is made from them.
func IsSteering(annotation string) bool {
	if slices.Contains(steeringNames(), annotation) {
		return true
	}
	domain, _, found := strings.Cut(annotation, "/")
	return found && slices.ContainsFunc(steeringDomains(), func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

// withoutSteering are the annotations of metadata in spec.topology that objects get. Admission refuses the others where they are new.
func withoutSteering(annotations map[string]string) map[string]string {
	out := make(map[string]string, len(annotations))
	for name, value := range annotations {
		if !IsSteering(name) {
			out[name] = value
		}
	}
	return out
}
