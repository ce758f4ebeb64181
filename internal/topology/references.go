package topology

import (
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TemplateRefs are the references of a class to templates, each once, in the order of the class.
func TemplateRefs(class *clusterv1.ClusterClass) []clusterv1.ClusterClassTemplateReference {
	spec := class.Spec
	refs := []clusterv1.ClusterClassTemplateReference{spec.Infrastructure.TemplateRef, spec.ControlPlane.TemplateRef, spec.ControlPlane.MachineInfrastructure.TemplateRef}
	for _, deployment := range spec.Workers.MachineDeployments {
		refs = append(refs, deployment.Bootstrap.TemplateRef, deployment.Infrastructure.TemplateRef)
	}
	for _, pool := range spec.Workers.MachinePools {
		refs = append(refs, pool.Bootstrap.TemplateRef, pool.Infrastructure.TemplateRef)
	}
	var out []clusterv1.ClusterClassTemplateReference
	for _, ref := range refs {
		if ref.IsDefined() && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}
