package plane

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// rolesAtOnce bounds how many roles are written at the same time.
const rolesAtOnce = 16

// primeRoles writes the default roles and their bindings that a cluster lacks.
// kube-apiserver does so itself, and keeps them as they should be, but it
// begins after a second's pause and writes one after the other; what is started
// meanwhile may do nothing, not even ask which APIs there are. It may be in the
// middle of that: whether one of them is there says nothing of the others.
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
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(rolesAtOnce)
	for _, b := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		if !slices.ContainsFunc(bindings.Items, func(o rbacv1.ClusterRoleBinding) bool { return o.Name == b.Name }) {
			g.Go(func() error {
				_, err := rbac.ClusterRoleBindings().Create(ctx, &b, metav1.CreateOptions{})
				return unlessThere("ClusterRoleBinding "+b.Name, err)
			})
		}
	}
	for _, r := range slices.Concat(bootstrappolicy.ControllerRoles(), bootstrappolicy.ClusterRoles()) {
		if r.Name == editors {
			g.Go(func() error { return narrowEditors(ctx, rbac.ClusterRoles(), r, hideSecrets) })
		} else if !slices.ContainsFunc(roles.Items, func(o rbacv1.ClusterRole) bool { return o.Name == r.Name }) {
			g.Go(func() error {
				_, err := rbac.ClusterRoles().Create(ctx, &r, metav1.CreateOptions{})
				return unlessThere("ClusterRole "+r.Name, err)
			})
		}
	}
	return g.Wait()
}

// editors is the default role that "edit" and "admin" are made of.
const editors = "system:aggregate-to-edit"

// narrowEditors takes from those who may edit a namespace the right to write Events: no quota counts them, so that one of them
// could fill the database for everybody. Where the operator wants it, they have no rights on Secrets either. kube-apiserver leaves a role
// with the annotation as it is.
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
		return unlessThere("ClusterRole "+r.Name, err)
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := roles.Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil || live.Annotations[rbacv1.AutoUpdateAnnotationKey] == "false" && equality.Semantic.DeepEqual(live.Rules, r.Rules) {
			return err
		}
		live.Rules, live.Annotations = r.Rules, r.Annotations // of an earlier version, or kube-apiserver was faster
		_, err = roles.Update(ctx, live, metav1.UpdateOptions{})
		return err
	})
}

func unlessThere(what string, err error) error {
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", what, err)
	}
	return nil
}
