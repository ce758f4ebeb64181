package simulated

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

// administrators is the group of the administrator that kubeadm creates. kubeadm binds it to a role; here it always has
// full access.
const administrators = "kubeadm:cluster-admins"

// access authorizes the requests of users by the RBAC objects of the cluster, and lists the permissions of a user. The
// groups of the api get it ([parts]).
type access interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// newAccess returns the authorizer of all clusters, in which administrators may do everything, and the one without this
// exception. The api is created with them.
func newAccess(client func() rbacclient.RbacV1Interface) (authorizer.Authorizer, access) {
	objects := rbacObjects{client}
	byRoles := rbac.New(objects, objects, objects, objects)
	return union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup, administrators), byRoles), byRoles
}

// rbacObjects reads the RBAC objects of the cluster in the request context.
type rbacObjects struct {
	client func() rbacclient.RbacV1Interface
}

func (o rbacObjects) GetRole(ctx context.Context, namespace, name string) (*rbacv1.Role, error) {
	return o.client().Roles(namespace).Get(withFullAccess(ctx), name, metav1.GetOptions{})
}

func (o rbacObjects) GetClusterRole(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	return o.client().ClusterRoles().Get(withFullAccess(ctx), name, metav1.GetOptions{})
}

func (o rbacObjects) ListRoleBindings(ctx context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	list, err := o.client().RoleBindings(namespace).List(withFullAccess(ctx), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

func (o rbacObjects) ListClusterRoleBindings(ctx context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	list, err := o.client().ClusterRoleBindings().List(withFullAccess(ctx), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

func pointers[T any](items []T) []*T {
	var out []*T
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}
