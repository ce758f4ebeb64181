package topology

import (
	"cmp"
	"slices"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TemplateRefs returns the references of a class to templates, without duplicates, in the order of the class. The
// topology and the ClusterClass controller read these templates.
func TemplateRefs(class *clusterv1.ClusterClass) []clusterv1.ClusterClassTemplateReference {
	spec := class.Spec
	refs := []clusterv1.ClusterClassTemplateReference{spec.Infrastructure.TemplateRef, spec.ControlPlane.TemplateRef, spec.ControlPlane.MachineInfrastructure.TemplateRef}
	for _, workers := range WorkerClasses(class) {
		refs = append(refs, workers.Bootstrap, workers.Infrastructure)
	}
	var out []clusterv1.ClusterClassTemplateReference
	for _, ref := range refs {
		if ref.IsDefined() && !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// SetReferences sets the references and labels of a Cluster with a topology. Existing references are not changed,
// because another object would replace the whole cluster. The topology controller calls it for its write to the
// Cluster.
func SetReferences(cluster *clusterv1.Cluster, desired Desired) {
	if part := desired.Part(Key{Role: InfraCluster}); !cluster.Spec.InfrastructureRef.IsDefined() {
		cluster.Spec.InfrastructureRef = Reference(part.Want)
	}
	if part := desired.Part(Key{Role: ControlPlane}); !cluster.Spec.ControlPlaneRef.IsDefined() {
		cluster.Spec.ControlPlaneRef = Reference(part.Want)
	}
	if cluster.Labels == nil {
		cluster.Labels = map[string]string{}
	}
	cluster.Labels[clusterv1.ClusterNameLabel] = cluster.Name
	cluster.Labels[clusterv1.ClusterTopologyOwnedLabel] = ""
}

// HasLabels reports whether a Cluster has the labels that [SetReferences] sets.
func HasLabels(cluster *clusterv1.Cluster) bool {
	_, owned := cluster.Labels[clusterv1.ClusterTopologyOwnedLabel]
	return owned && cluster.Labels[clusterv1.ClusterNameLabel] == cluster.Name
}

// ClassKey returns the key of a Cluster's class, for the topology controller and the webhooks.
func ClassKey(cluster *clusterv1.Cluster) client.ObjectKey {
	ref := cluster.Spec.Topology.ClassRef
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, cluster.Namespace), Name: ref.Name}
}
