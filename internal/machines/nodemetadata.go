package machines

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// NodeMetadata is the metadata that a Node receives from its Machine. The Machine controller synchronizes it in each
// reconciliation. The annotations are defined by Cluster API; other tools read them.
type NodeMetadata struct {
	Machine *clusterv1.Machine
	// AlsoLabels and AlsoAnnotations match the keys of additional labels and annotations to synchronize.
	AlsoLabels, AlsoAnnotations []*regexp.Regexp
	// Interruptible is set if the infrastructure may terminate the machine at any time, Outdated if the Machine's
	// MachineSet is not the newest of its MachineDeployment, and Taints if the Machine's taints are synchronized.
	Interruptible, Outdated, Taints bool
}

// IsSynced reports whether Sync would leave the Node unchanged.
func (d NodeMetadata) IsSynced(node *corev1.Node) bool {
	after := node.DeepCopy()
	d.Sync(after)
	return maps.Equal(after.Annotations, node.Annotations) && maps.Equal(after.Labels, node.Labels) &&
		apiequality.Semantic.DeepEqual(after.Spec.Taints, node.Spec.Taints)
}

// Sync sets the annotations that identify the Node's Machine, copies the Machine's labels and annotations, and
// removes the uninitialized taint.
//
// Two annotations record the keys that came from the Machine, so that only these are removed when the Machine no
// longer has them. The taint is removed in the same patch that adds the first labels, because a Pod that selects by
// these labels must not be scheduled earlier.
func (d NodeMetadata) Sync(node *corev1.Node) {
	m := d.Machine
	node.Labels, node.Annotations = maps.Clone(node.Labels), maps.Clone(node.Annotations)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	labels, annotations := NodeLabels(m.Labels, d.AlsoLabels...), filterAnnotations(m.Annotations, d.AlsoAnnotations...)
	removeStale(node.Labels, labels, node.Annotations[clusterv1.LabelsFromMachineAnnotation])
	removeStale(node.Annotations, annotations, node.Annotations[clusterv1.AnnotationsFromMachineAnnotation])
	maps.Copy(node.Labels, labels)
	maps.Copy(node.Annotations, annotations)
	node.Annotations[clusterv1.LabelsFromMachineAnnotation] = keys(labels)
	node.Annotations[clusterv1.AnnotationsFromMachineAnnotation] = keys(annotations)
	node.Annotations[clusterv1.ClusterNameAnnotation] = m.Spec.ClusterName
	node.Annotations[clusterv1.ClusterNamespaceAnnotation] = m.Namespace
	node.Annotations[clusterv1.MachineAnnotation] = m.Name
	if owner := metav1.GetControllerOf(m); owner != nil {
		node.Annotations[clusterv1.OwnerKindAnnotation], node.Annotations[clusterv1.OwnerNameAnnotation] = owner.Kind, owner.Name
	}
	if d.Interruptible {
		node.Labels[clusterv1.InterruptibleLabel] = ""
	}
	node.Spec.Taints = without(node.Spec.Taints, clusterv1.NodeUninitializedTaint)
	if d.Outdated {
		node.Spec.Taints = with(node.Spec.Taints, clusterv1.NodeOutdatedRevisionTaint)
	} else {
		node.Spec.Taints = without(node.Spec.Taints, clusterv1.NodeOutdatedRevisionTaint)
	}
	if d.Taints {
		syncTaints(m.Spec.Taints, node)
	}
}

// SyncNodeLabels sets the labels on a Node that has no Machine and removes labels that it set earlier and that are no
// longer wanted. It records them in the same annotation as [NodeMetadata.Sync], so that a Machine that is created later
// continues from there. The MachinePool controller calls it.
func SyncNodeLabels(labels map[string]string, node *corev1.Node) {
	node.Labels, node.Annotations = maps.Clone(node.Labels), maps.Clone(node.Annotations)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	removeStale(node.Labels, labels, node.Annotations[clusterv1.LabelsFromMachineAnnotation])
	maps.Copy(node.Labels, labels)
	delete(node.Annotations, clusterv1.LabelsFromMachineAnnotation)
	if len(labels) > 0 { // a Node without such labels needs no write
		node.Annotations[clusterv1.LabelsFromMachineAnnotation] = keys(labels)
	}
}

// removeStale removes the keys that came from the Machine earlier and are no longer wanted.
func removeStale(have, want map[string]string, tracked string) {
	for _, key := range strings.Split(tracked, ",") {
		if _, stays := want[key]; !stays {
			delete(have, key)
		}
	}
}

func keys(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}
