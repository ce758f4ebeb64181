package clusterclass

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// ownerReference returns the owner reference to the class for its templates.
func ownerReference(class *clusterv1.ClusterClass) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterClassKind, Name: class.Name, UID: class.UID,
	}
}

// owns reports whether the class is already an owner of the template. decide plans an action if it is not.
func owns(class *clusterv1.ClusterClass, template contract.Object) bool {
	return slices.Contains(template.GetOwnerReferences(), ownerReference(class))
}

// act runs one action; the only one is own. Package reconciler calls it for each action that [decide] planned.
func (c *controller) act(ctx context.Context, s snapshot, a reconciler.Action) error {
	own, ok := a.(own)
	if !ok {
		return reconciler.UnknownAction("clusterclass", a)
	}
	at := slices.IndexFunc(s.Templates, func(t classTemplate) bool { return t.Ref == own.Ref })
	return c.writer.Patch(ctx, s.Templates[at].Object.Unstructured, func(o client.Object) {
		// Remove references to the class with an older API version, and to a deleted class with the same name.
		owners := slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
			return r.Kind == clusterv1.ClusterClassKind && r.Name == s.Class.Name
		})
		o.SetOwnerReferences(append(owners, ownerReference(s.Class)))
	})
}
