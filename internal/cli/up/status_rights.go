package up

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// missingRights lists, for the status command, the missing roles and bindings of the manager's identities, such as
// "ClusterRoleBinding slipway-infrastructure-local". Without them a provider can neither work nor report the problem.
// Providers without any role are not enabled. [statusReport.readAPI] calls it.
func missingRights(ctx context.Context, c client.Reader) ([]string, error) {
	there := map[string]bool{}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing objects of kind %s: %w", kind, err)
		}
		for _, o := range list.Items {
			there[kind+" "+o.Name] = true
		}
	}
	sets := slices.DeleteFunc(providerset.All(), func(set providerset.Set) bool {
		return !there["ClusterRole "+rbac.RoleOf(set.Name)+"-process"]
	})
	if len(sets) == 0 {
		return nil, nil
	}
	objects, err := rbac.Objects(rbac.Rights{Sets: sets, Separate: true})
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, o := range objects {
		name := o.GetKind() + " " + o.GetName()
		if strings.HasPrefix(o.GetAPIVersion(), rbacv1.GroupName) && !there[name] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}
