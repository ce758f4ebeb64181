package controlplane

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/slipwayhq/slipway/internal/fault"
)

// rolesAtOnce limits concurrent writes of roles.
const rolesAtOnce = 16

// primeRoles creates missing default roles and bindings in the management cluster; [StartManagement] calls it when the
// API server is ready. kube-apiserver also creates and reconciles them, but starts after a delay of one second and
// writes them sequentially. Components that start in the meantime have no permissions, not even for API discovery.
// kube-apiserver may be writing them at the same time, therefore the existence of one does not imply the others.
func primeRoles(ctx context.Context, root *rest.Config, hideSecrets bool) error {
	root = rest.CopyConfig(root)
	root.QPS = -1
	client, err := kubernetes.NewForConfig(root)
	if err != nil {
		return err
	}
	rbac := client.RbacV1()
	roles, err := rbac.ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ClusterRoles: %w", err)
	}
	bindings, err := rbac.ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	g, ctx := fault.NewGroup(ctx)
	g.SetLimit(rolesAtOnce)
	for _, b := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		if !slices.ContainsFunc(bindings.Items, func(o rbacv1.ClusterRoleBinding) bool { return o.Name == b.Name }) {
			g.Go(func() error {
				_, err := rbac.ClusterRoleBindings().Create(ctx, &b, metav1.CreateOptions{})
				return ignoreAlreadyExists("ClusterRoleBinding "+b.Name, err)
			})
		}
	}
	for _, r := range slices.Concat(bootstrappolicy.ControllerRoles(), bootstrappolicy.ClusterRoles()) {
		if r.Name == editors {
			g.Go(func() error { return narrowEditors(ctx, rbac.ClusterRoles(), r, hideSecrets) })
		} else if !slices.ContainsFunc(roles.Items, func(o rbacv1.ClusterRole) bool { return o.Name == r.Name }) {
			g.Go(func() error {
				_, err := rbac.ClusterRoles().Create(ctx, &r, metav1.CreateOptions{})
				return ignoreAlreadyExists("ClusterRole "+r.Name, err)
			})
		}
	}
	return g.Wait()
}

// editors is the default role that is aggregated to "edit" and "admin".
const editors = "system:aggregate-to-edit"

// narrowEditors removes write access to Events from users who may edit a namespace: no quota limits Events, so that one
// user could fill the database. If the operator configures it (hideSecrets), it also removes access to Secrets.
// kube-apiserver does not reconcile a role with the annotation.
func narrowEditors(ctx context.Context, roles rbacclient.ClusterRoleInterface, r rbacv1.ClusterRole, hideSecrets bool) error {
	r.Rules = slices.DeleteFunc(slices.Clone(r.Rules), func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "events") })
	if hideSecrets {
		for i, rule := range r.Rules {
			r.Rules[i].Resources = slices.DeleteFunc(slices.Clone(rule.Resources), func(resource string) bool { return resource == "secrets" })
		}
	}
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, rbacv1.AutoUpdateAnnotationKey, "false")
	_, err := roles.Create(ctx, &r, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return ignoreAlreadyExists("ClusterRole "+r.Name, err)
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := roles.Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil || live.Annotations[rbacv1.AutoUpdateAnnotationKey] == "false" && equality.Semantic.DeepEqual(live.Rules, r.Rules) {
			return err
		}
		live.Rules, live.Annotations = r.Rules, r.Annotations // written by an earlier version or by kube-apiserver
		_, err = roles.Update(ctx, live, metav1.UpdateOptions{})
		return err
	})
}

func ignoreAlreadyExists(what string, err error) error {
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", what, err)
	}
	return nil
}
