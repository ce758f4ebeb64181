package manager_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// A management cluster that an earlier version installed its roles in loses what they gave and this version does not give:
// C1, the roles that made every editor of a namespace root on the host.
func TestInstallNarrowsRolesOfAnEarlierVersion(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	c, err := client.New(server.Config, client.Options{Scheme: clientgoscheme.Scheme})
	must(t, err)
	everything := []any{map[string]any{
		"apiGroups": []any{"cluster.x-k8s.io", "infrastructure.slipway.dev"}, "resources": []any{"*"}, "verbs": []any{"get", "patch"},
	}}
	for _, name := range []string{"slipway-edit", "slipway-cluster-operator", "slipway-gone"} {
		role := &unstructured.Unstructured{Object: map[string]any{"rules": everything}}
		role.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		role.SetName(name)
		role.SetLabels(map[string]string{"rbac.authorization.k8s.io/aggregate-to-edit": "true"})
		must(t, kube.NewWriter(c, "install").Apply(t.Context(), nil, role))
	}
	copied := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "slipway-mine"}}
	must(t, c.Create(t.Context(), copied))
	for range 2 { // a restart changes nothing more
		must(t, manager.Install(t.Context(), server.Config, rbac.Rights{}))
	}
	edit, operator := &rbacv1.ClusterRole{}, &rbacv1.ClusterRole{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: "slipway-edit"}, edit))
	for _, rule := range edit.Rules {
		for _, resource := range rule.Resources {
			// SSHMachines name no host, address or key; the kinds of the local provider run containers on the host of Slipway.
			if resource == "*" || strings.HasPrefix(resource, "local") || resource == "sshhosts" {
				t.Errorf("slipway-edit kept %v", rule)
			}
		}
	}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: "slipway-cluster-operator"}, operator))
	if len(operator.Labels) != 0 {
		t.Errorf("slipway-cluster-operator is aggregated as before: %v", operator.Labels)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "slipway-gone"}, &rbacv1.ClusterRole{}); !apierrors.IsNotFound(err) {
		t.Errorf("a role that this version does not know is there: %v", err)
	}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(copied), copied))
}
