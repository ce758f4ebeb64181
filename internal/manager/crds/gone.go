package crds

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// goneTimeout limits the wait for the deletion of a CRD that no finalizer seems to block.
const goneTimeout = 30 * time.Second

// awaitDeleted waits until a CRD that is being deleted is gone and reports whether it is. [Install] calls it before it
// writes the CRD, because changes applied before that are lost. It does not wait if finalizers of the CRD or of its
// objects block the deletion, because these may be finalizers that the waiting manager itself has to remove.
func awaitDeleted(ctx context.Context, c client.Client, name string) (gone bool, err error) {
	said := false
	err = wait.PollUntilContextTimeout(ctx, pollInterval, goneTimeout, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			gone = apierrors.IsNotFound(err)
			return true, client.IgnoreNotFound(err)
		}
		if crd.DeletionTimestamp.IsZero() || isDeletionBlocked(ctx, c, crd) {
			return true, nil
		}
		if !said {
			said = true
			ctrl.LoggerFrom(ctx).Info("waiting until a CRD is deleted before installing it again", "crd", name)
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("waiting for CRD %s, which is being deleted, to be gone: %w", name, err)
	}
	return gone, nil
}

// isDeletionBlocked reports whether the deletion of a CRD is or may be blocked by other finalizers on the CRD, or by
// objects with finalizers.
func isDeletionBlocked(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) bool {
	stored := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	foreign := func(name string) bool { return name != apiextensionsv1.CustomResourceCleanupFinalizer }
	if stored < 0 || slices.ContainsFunc(crd.Finalizers, foreign) {
		return true
	}
	list := &metav1.PartialObjectMetadataList{}
	list.APIVersion, list.Kind = crd.Spec.Group+"/"+crd.Spec.Versions[stored].Name, crd.Spec.Names.ListKind
	if err := c.List(ctx, list); err != nil {
		return !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err)
	}
	return slices.ContainsFunc(list.Items, func(o metav1.PartialObjectMetadata) bool { return len(o.Finalizers) > 0 })
}
