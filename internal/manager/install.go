package manager

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/kube"
)

const rightsPoll, rightsTimeout = 20 * time.Millisecond, 30 * time.Second

// installer names the field manager of what Install writes.
const installer = "install"

// Install prepares a management cluster for [Run], with an administrator's access: the manager's namespace, its rights,
// and the roles for people. What is there already is not written again; what an earlier version installed and this one
// does not is taken back. CRDs and webhook configurations the manager keeps itself.
func Install(ctx context.Context, admin *rest.Config) error {
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the management cluster: %w", err)
	}
	if err := ensureNamespace(ctx, c); err != nil {
		return err
	}
	if err := installRights(ctx, c, kube.NewWriter(c, installer)); err != nil {
		return err
	}
	return awaitRights(ctx, c)
}

// ensureNamespace makes the manager's namespace where it is missing.
func ensureNamespace(ctx context.Context, c client.Client) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns)
	if apierrors.IsNotFound(err) {
		err = c.Create(ctx, ns)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", Namespace, err)
	}
	return nil
}

// awaitRights waits until the API server has seen the rights: it reads them from a cache of its own.
func awaitRights(ctx context.Context, c client.Client) error {
	err := wait.PollUntilContextTimeout(ctx, rightsPoll, rightsTimeout, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: rbac.User, ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "infrastructure.slipway.dev", Resource: "localmachines", Verb: "watch"},
		}}
		if err := c.Create(ctx, review); err != nil {
			return false, err
		}
		return review.Status.Allowed, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the rights of %s: %w", rbac.User, err)
	}
	return nil
}

func installRights(ctx context.Context, c client.Client, w *kube.Writer) error {
	objects, err := rbac.Objects()
	if err != nil {
		return err
	}
	current := map[string]bool{}
	for _, o := range objects {
		current[o.GetKind()+"/"+o.GetName()] = true
		live := o.DeepCopy()
		err := c.Get(ctx, client.ObjectKeyFromObject(o), live)
		if apierrors.IsNotFound(err) {
			err = w.Apply(ctx, nil, o)
		} else if err == nil {
			err = w.Apply(ctx, live, o)
		}
		if err != nil {
			return fmt.Errorf("installing %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return deleteStaleRoles(ctx, c, w, current)
}

// deleteStaleRoles deletes the ClusterRoles that an earlier version installed and this one does not know: what they give
// would stay for good. A copy that a person made is not among them, because it was not written by Install.
func deleteStaleRoles(ctx context.Context, c client.Client, w *kube.Writer, current map[string]bool) error {
	roles := &metav1.PartialObjectMetadataList{}
	roles.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRoleList"))
	if err := c.List(ctx, roles); err != nil {
		return fmt.Errorf("listing ClusterRoles: %w", err)
	}
	for i := range roles.Items {
		role := &roles.Items[i]
		installed := slices.ContainsFunc(role.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == kube.Prefix+installer && e.Operation == metav1.ManagedFieldsOperationApply
		})
		if !installed || current["ClusterRole/"+role.Name] {
			continue
		}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		if err := w.Delete(ctx, role); err != nil {
			return fmt.Errorf("deleting ClusterRole %s of an earlier version: %w", role.Name, err)
		}
	}
	return nil
}
