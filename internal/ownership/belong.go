package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Join makes an object belong to a Cluster: labelled with its name, and owned by it.
func Join(o metav1.Object, cluster *clusterv1.Cluster) {
	Label(o, clusterv1.ClusterNameLabel, cluster.Name)
	Own(o, ByCluster(cluster))
}

// Joined reports whether an object belongs to a Cluster, in the version of the API in which it is referred to today.
func Joined(o metav1.Object, cluster *clusterv1.Cluster) bool {
	return o.GetLabels()[clusterv1.ClusterNameLabel] == cluster.Name && OwnedByCluster(o, cluster)
}

// OwnedByCluster reports whether a Cluster is an owner of an object, by its UID, and nothing is to be changed of the reference.
func OwnedByCluster(o metav1.Object, cluster *clusterv1.Cluster) bool {
	return Owns(cluster, o) && !Outdated(o, ByCluster(cluster))
}

// Outdated reports whether an object refers to its owner in another version of the API than the reference does. Nothing would collect
// the object any more once that version is not served: it came from an older management cluster.
func Outdated(o metav1.Object, owner metav1.OwnerReference) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.UID && ref.APIVersion != owner.APIVersion
	})
}

// ByCluster is the reference to a Cluster that owns and does not control.
func ByCluster(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: cluster.Name, UID: cluster.UID,
	}
}

// Owns reports whether owner is an owner of o, by its UID.
func Owns(owner, o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.GetUID()
	})
}

// Own adds an owner, in place of an older reference to the same object: one that was restored has another UID.
func Own(o metav1.Object, owner metav1.OwnerReference) {
	o.SetOwnerReferences(append(Without(o.GetOwnerReferences(), owner), owner))
}

// Without returns the references but for those to an object of the group, kind and name of owner, of whatever UID.
func Without(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.Kind == owner.Kind && ref.Name == owner.Name && group(ref) == group(owner)
	})
}

func group(ref metav1.OwnerReference) string {
	name, _, _ := strings.Cut(ref.APIVersion, "/")
	return name
}

// Label sets a label in a map of its own: that of the object may be shared.
func Label(o metav1.Object, key, value string) {
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
}

// PassWatchLabel returns labels with the watch label that an object hands down to what is created for it, so that both are of
// the same manager. The labels given are not changed.
func PassWatchLabel(from metav1.Object, labels map[string]string) map[string]string {
	value, has := from.GetLabels()[clusterv1.WatchLabel]
	if !has {
		return labels
	}
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[clusterv1.WatchLabel] = value
	return out
}

// MissingWatchLabel is the end of a message that waits for the provider of an object: it says that the object lacks the watch
// label of the one that refers to it, so that a provider with a filter does not see it. Empty: it does not lack the label.
func MissingWatchLabel(from, o metav1.Object) string {
	value, has := from.GetLabels()[clusterv1.WatchLabel]
	if _, also := o.GetLabels()[clusterv1.WatchLabel]; !has || also {
		return ""
	}
	return fmt.Sprintf("; it lacks the label %s=%s: set it if its provider runs with --watch-filter", clusterv1.WatchLabel, value)
}

// ControllerOfChild tells who controls an object that may belong to an owner of a kind. One of the same name that does not exist any
// more counts as no controller: the object was restored together with the reference.
func ControllerOfChild(o metav1.Object, kind string, owner metav1.Object) Controller {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref != nil && ref.Kind == kind && ref.Name == owner.GetName() && ref.UID != owner.GetUID() {
		return Nobody
	}
	return ControllerOf(o, owner.GetUID())
}
