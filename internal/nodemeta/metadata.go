package nodemeta

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

// Metadata is what a Node has of its Machine.
type Metadata struct {
	Machine *clusterv1.Machine
	// AlsoLabels and AlsoAnnotations match further keys that belong on the Node.
	AlsoLabels, AlsoAnnotations []*regexp.Regexp
	// Interruptible tells that the infrastructure may end the machine at any time, Outdated that its MachineSet is not the
	// newest of the MachineDeployment, Taints that the Machine's taints belong on the Node.
	Interruptible, Outdated, Taints bool
}

// IsSynced reports whether the Node is as Sync makes it.
func (d Metadata) IsSynced(node *corev1.Node) bool {
	after := node.DeepCopy()
	d.Sync(after)
	return maps.Equal(after.Annotations, node.Annotations) && maps.Equal(after.Labels, node.Labels) &&
		apiequality.Semantic.DeepEqual(after.Spec.Taints, node.Spec.Taints)
}

// Sync makes the Node say which Machine it is of, gives it the Machine's labels and annotations, and lets Pods come.
//
// What came from the Machine is remembered in two annotations, so that it goes when the Machine drops it and nothing else
// does. The uninitialized taint goes in the same patch as the first labels come, since a Pod that needs them must not be
// placed earlier.
func (d Metadata) Sync(node *corev1.Node) {
	m := d.Machine
	node.Labels, node.Annotations = maps.Clone(node.Labels), maps.Clone(node.Annotations)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	labels, annotations := Labels(m.Labels, d.AlsoLabels...), Annotations(m.Annotations, d.AlsoAnnotations...)
	drop(node.Labels, labels, node.Annotations[clusterv1.LabelsFromMachineAnnotation])
	drop(node.Annotations, annotations, node.Annotations[clusterv1.AnnotationsFromMachineAnnotation])
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

// Track makes a Node that no Machine stands for have the labels, without those that it got this way before and that are not
// among them any more. They are remembered where [Metadata.Sync] remembers them, so that a Machine that comes later takes over.
func Track(labels map[string]string, node *corev1.Node) {
	node.Labels, node.Annotations = maps.Clone(node.Labels), maps.Clone(node.Annotations)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	drop(node.Labels, labels, node.Annotations[clusterv1.LabelsFromMachineAnnotation])
	maps.Copy(node.Labels, labels)
	delete(node.Annotations, clusterv1.LabelsFromMachineAnnotation)
	if len(labels) > 0 { // a Node without any needs no write
		node.Annotations[clusterv1.LabelsFromMachineAnnotation] = keys(labels)
	}
}

// drop removes what came from the Machine before and does not any more.
func drop(have, want map[string]string, tracked string) {
	for _, key := range strings.Split(tracked, ",") {
		if _, stays := want[key]; !stays {
			delete(have, key)
		}
	}
}

func keys(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}
