package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// readyEvery is how often a starting API server is asked; readyWithin is how
// long it may take, a large database included.
const (
	readyEvery  = 50 * time.Millisecond
	readyWithin = 2 * time.Minute
)

// rolesHook is the part of kube-apiserver's start that writes the default roles.
// It begins with a pause of a second.
const rolesHook = "poststarthook/rbac/bootstrap-roles"

// awaitReady waits for /readyz, not counting the checks named in exclude.
func awaitReady(g *group, c *rest.Config, exclude ...string) error {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(g.ctx, readyWithin)
	defer cancel()
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		request := client.Discovery().RESTClient().Get().AbsPath("/readyz")
		for _, check := range exclude {
			request = request.Param("exclude", check)
		}
		answer, err := request.DoRaw(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if g.ctx.Err() != nil {
				return errors.Join(g.cause(), g.ctx.Err())
			}
			return fmt.Errorf("kube-apiserver is not ready after %s: %w: %s", readyWithin, err, answer)
		}
	}
}

// bindAdmins gives group the role cluster-admin.
func bindAdmins(ctx context.Context, c *rest.Config, group string) error {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("bind %s to cluster-admin: %w", group, err)
	}
	return nil
}
