package manager_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// Who may edit one namespace gets nothing made of a class of another one, which may bring nodes of the host.
func TestClassesOfOtherNamespaces(t *testing.T) { // TP-19
	server := apiserver.Start(t, apiserver.Options{})
	admin := newClient(t, server)
	must(t, crds.Install(t.Context(), admin, crds.Options{Sets: providerset.All()}))
	must(t, manager.Install(t.Context(), server.Config, rbac.Rights{}))
	for _, name := range []string{"team", "shared"} {
		must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "editors"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "slipway-edit"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "editor"}}}))
	as := rest.CopyConfig(server.Config)
	as.Impersonate = rest.ImpersonationConfig{UserName: "editor", Groups: []string{"system:authenticated"}}
	editor, err := client.New(as, client.Options{Scheme: admin.Scheme()})
	must(t, err)
	cluster := func(name, namespace string) *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Spec: clusterv1.ClusterSpec{
			Topology: clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "local", Namespace: namespace}, Version: "v1.36.3"}}}
	}
	const want = "you may not get ClusterClass local in namespace shared: ask for the right to read it there"
	deadline := time.Now().Add(time.Minute)
	for n := 0; ; n++ { // a policy holds some time after it was made
		err := editor.Create(t.Context(), cluster("stolen", "shared"), client.DryRunAll)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a class of another namespace: %v", err)
		}
	}
	for name, namespace := range map[string]string{"own": "", "named": "team"} {
		if err := editor.Create(t.Context(), cluster(name, namespace)); err != nil {
			t.Errorf("a class of the namespace itself: %v", err)
		}
	}
	given := cluster("given", "shared")
	if err := admin.Create(t.Context(), given); err != nil {
		t.Fatalf("who may read the class uses it: %v", err)
	}
	must(t, editor.Get(t.Context(), client.ObjectKeyFromObject(given), given))
	given.Labels = map[string]string{"mine": "yes"}
	if err := editor.Update(t.Context(), given); err != nil {
		t.Errorf("what is not about the class may change: %v", err)
	}
	own := cluster("own", "")
	must(t, editor.Get(t.Context(), client.ObjectKeyFromObject(own), own))
	own.Spec.Topology.ClassRef.Namespace = "shared"
	if err := editor.Update(t.Context(), own); !apierrors.IsForbidden(err) {
		t.Errorf("nor is a class of another namespace chosen later: %v", err)
	}
}
