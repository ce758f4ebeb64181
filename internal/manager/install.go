package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/providerset"
)

const rightsPoll, rightsTimeout = 20 * time.Millisecond, 30 * time.Second

// installer is the field manager of Install.
const installer = "install"

// Install prepares a management cluster for [Run] of `slipway up`, with administrator access: the manager's namespace,
// RBAC for the enabled providers, and the roles for users. Unchanged objects are not written. Objects from an earlier
// version or run that are no longer needed are deleted, including the webhook configurations of disabled providers.
// CRDs and webhook configurations are managed by the manager itself. CRDs of a provider that is no longer enabled
// remain, with their objects.
func Install(ctx context.Context, admin *rest.Config, rights rbac.Rights) error {
	if rights.Sets == nil {
		rights.Sets = providerset.All()
	}
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
	if err := installRights(ctx, c, kube.NewWriter(c, installer), rights); err != nil {
		return err
	}
	return awaitRights(ctx, c, rights)
}

// ensureNamespace creates the manager's namespace if it is missing.
func ensureNamespace(ctx context.Context, c client.Client) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	err := c.Get(ctx, client.ObjectKeyFromObject(ns), ns)
	if apierrors.IsNotFound(err) {
		err = c.Create(ctx, ns)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making namespace %s: %w", namespace, err)
	}
	return nil
}

// awaitRights waits until the RBAC rules are in force, because the API server reads them from a cache.
func awaitRights(ctx context.Context, c client.Client, rights rbac.Rights) error {
	waiting := reviews(rights)
	err := wait.PollUntilContextTimeout(ctx, rightsPoll, rightsTimeout, true, func(ctx context.Context) (bool, error) {
		for len(waiting) > 0 {
			review := &authorizationv1.SubjectAccessReview{Spec: waiting[0]}
			if err := c.Create(ctx, review); err != nil || !review.Status.Allowed {
				return false, err
			}
			waiting = waiting[1:]
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the rights of %s: %w", waiting[0].User, err)
	}
	return nil
}

// reviews returns one access review for each binding, and reviews of the core provider's access to the kinds
// of other providers.
func reviews(rights rbac.Rights) []authorizationv1.SubjectAccessReviewSpec {
	var out []authorizationv1.SubjectAccessReviewSpec
	ask := func(user, verb, resource, name string) {
		plural, group, _ := strings.Cut(resource, ".")
		out = append(out, authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: plural, Name: name},
		})
	}
	for _, set := range rights.Sets {
		ask(rbac.User, "patch", "customresourcedefinitions."+apiextensionsv1.GroupName, set.CRDs[0])
		if len(set.Controllers) == 0 {
			continue
		}
		ask(rights.UserOf(set.Name), "patch", set.CRDs[0], "")
		if providerset.Contains(rights.Sets, providerset.Core) {
			ask(rights.UserOf(providerset.Core), "delete", set.CRDs[0], "")
			ask(rbac.User, "watch", set.CRDs[0], "")
		}
	}
	return out
}

func installRights(ctx context.Context, c client.Client, w *kube.Writer, rights rbac.Rights) error {
	objects, err := rbac.Objects(rights)
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
	for _, set := range rights.Sets {
		current["MutatingWebhookConfiguration/"+set.MutatingWebhookName()] = true
		current["ValidatingWebhookConfiguration/"+set.ValidatingWebhookName()] = true
	}
	for _, kind := range []schema.GroupVersionKind{
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
	} {
		if err := deleteStale(ctx, c, w, kind, current); err != nil {
			return err
		}
	}
	return nil
}

// deleteStale deletes objects of a kind that an earlier version or run installed and that are no longer
// needed: stale roles would grant access forever, and a webhook without a server would reject every write.
// Copies that a user created are not deleted, because they have a different field manager.
func deleteStale(ctx context.Context, c client.Client, w *kube.Writer, kind schema.GroupVersionKind, current map[string]bool) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list); err != nil {
		return fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		installed := slices.ContainsFunc(o.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return (e.Manager == kube.ManagerPrefix+installer || e.Manager == kube.ManagerPrefix+webhook.FieldOwner) && e.Operation == metav1.ManagedFieldsOperationApply
		})
		if !installed || current[kind.Kind+"/"+o.Name] {
			continue
		}
		o.SetGroupVersionKind(kind)
		if err := w.Delete(ctx, o); err != nil {
			return fmt.Errorf("deleting %s %s of an earlier run: %w", kind.Kind, o.Name, err)
		}
	}
	return nil
}
