package reference

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// conflictingController returns the controller owner that prevents this owner from controlling the object, or nil. An
// owner with the same kind and name does not conflict: it is the same object before it was recreated.
func (l Link) conflictingController() *metav1.OwnerReference {
	other := metav1.GetControllerOfNoCopy(l.Object())
	if other == nil || l.Shared {
		return nil
	}
	ofSameKind := schema.FromAPIVersionAndKind(other.APIVersion, other.Kind).GroupKind() == l.Owner.GroupKind()
	if ofSameKind && (other.Name == l.From.GetName() || other.UID == l.From.GetUID()) || !ofSameKind && l.ReplacesController {
		return nil
	}
	return other
}

func (l Link) ownerReference() metav1.OwnerReference {
	if !l.Shared {
		return *metav1.NewControllerRef(l.From, l.Owner)
	}
	return metav1.OwnerReference{
		APIVersion: l.Owner.GroupVersion().String(), Kind: l.Owner.Kind, Name: l.From.GetName(), UID: l.From.GetUID(), Controller: new(false),
	}
}

// isOwned reports whether the object has the expected owner reference and cluster label. [Link.Decide] sets the owner
// if it returns false.
func (l Link) isOwned() bool {
	o, want := l.Object(), l.ownerReference()
	return o.GetLabels()[clusterv1.ClusterNameLabel] == l.Cluster &&
		slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			return ref.UID == want.UID && ref.APIVersion == want.APIVersion && (ref.Controller != nil && *ref.Controller) == *want.Controller
		})
}

// own adds the owner reference and the cluster label, with which providers find the owner and the Cluster of their
// objects (contract of Cluster API). [Act] calls it for [SetOwner]. If the object is not shared, the owner becomes its
// controller and replaces any previous controller.
func (l Link) own(o metav1.Object) {
	ownership.Label(o, clusterv1.ClusterNameLabel, l.Cluster)
	if !l.Shared {
		o.SetOwnerReferences(slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
			return ref.Controller != nil && *ref.Controller
		}))
	}
	ownership.AddOwner(o, l.ownerReference())
}
