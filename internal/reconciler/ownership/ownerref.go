package ownership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// AddToCluster sets the cluster label and adds the Cluster as an owner, which Cluster API requires of the objects of a
// Cluster. Controllers call it when they write such an object for the first time.
func AddToCluster(o metav1.Object, cluster *clusterv1.Cluster) {
	Label(o, clusterv1.ClusterNameLabel, cluster.Name)
	AddOwner(o, ByCluster(cluster))
}

// IsInCluster reports whether the object has the cluster label and an owner reference to the Cluster with the current
// API version. If it is false, the Decide function of a controller plans the action that calls [AddToCluster].
func IsInCluster(o metav1.Object, cluster *clusterv1.Cluster) bool {
	return o.GetLabels()[clusterv1.ClusterNameLabel] == cluster.Name && OwnedByCluster(o, cluster)
}

// OwnedByCluster reports whether the Cluster, identified by its UID, is an owner of the object and the reference is
// up to date.
func OwnedByCluster(o metav1.Object, cluster *clusterv1.Cluster) bool {
	return Owns(cluster, o) && !Outdated(o, ByCluster(cluster))
}

// Outdated reports whether the object references the owner with another API version. Such references come from older
// management clusters. The garbage collector cannot collect the object once that version is no longer served. Package
// machines then updates the reference.
func Outdated(o metav1.Object, owner metav1.OwnerReference) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.UID && ref.APIVersion != owner.APIVersion
	})
}

// ByCluster returns a non-controller owner reference to the Cluster.
func ByCluster(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: cluster.Name, UID: cluster.UID,
	}
}

// Owns reports whether owner, identified by its UID, is an owner of o.
func Owns(owner, o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.GetUID()
	})
}

// AddOwner adds an owner reference. It replaces an existing reference to the same object with another UID, which a
// restored owner leaves behind.
func AddOwner(o metav1.Object, owner metav1.OwnerReference) {
	o.SetOwnerReferences(append(without(o.GetOwnerReferences(), owner), owner))
}

// without returns the references without those to an object with the same group, kind and name as owner, regardless
// of the UID.
func without(refs []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.Kind == owner.Kind && ref.Name == owner.Name && group(ref) == group(owner)
	})
}

func group(ref metav1.OwnerReference) string {
	name, _, _ := strings.Cut(ref.APIVersion, "/")
	return name
}

// Label sets a label in a copy of the object's labels, because the original map may be shared.
func Label(o metav1.Object, key, value string) {
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
}

// PassWatchLabel returns a copy of labels that includes the watch label of from, so that the manager of an object
// also manages the objects that are created for it. Controllers call it for the labels of objects that they create.
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

// MissingWatchLabel returns a suffix for messages that wait for the provider of an object. It explains that the
// object lacks the watch label of the object that references it, so that a provider with a filter ignores it. It is
// empty if the label is present. Package reference calls it.
func MissingWatchLabel(from, o metav1.Object) string {
	value, has := from.GetLabels()[clusterv1.WatchLabel]
	if _, also := o.GetLabels()[clusterv1.WatchLabel]; !has || also {
		return ""
	}
	return fmt.Sprintf("; it lacks the label %s=%s: set it if its provider runs with --watch-filter", clusterv1.WatchLabel, value)
}

// ControllerOfChild returns who controls a possible child of the owner. A controller reference to the same kind and
// name with a different UID counts as no controller, because it was restored together with the object. The MachineSet
// controller and the KubeadmControlPlane controller call it.
func ControllerOfChild(o metav1.Object, kind string, owner metav1.Object) Controller {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref != nil && ref.Kind == kind && ref.Name == owner.GetName() && ref.UID != owner.GetUID() {
		return NoController
	}
	return ControllerOf(o, owner.GetUID())
}
