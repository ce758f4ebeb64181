package manager_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// What a class of another namespace gives, the files and commands in its templates among it, is for those who may use that class, in both
// versions of the API. Whoever reads the class alone, as role view does, gets nothing made of it.
func TestClassesOfOtherNamespaces(t *testing.T) { // TP-19
	server := apiserver.Start(t, apiserver.Options{})
	admin := newClient(t, server)
	must(t, crds.Install(t.Context(), admin, crds.Options{Sets: providerset.All()}))
	for _, name := range []string{"team", "shared"} {
		must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	startProcess(t, server, "--feature-gates=ClusterTopology=true")
	bind := func(namespace, role, user string) {
		must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user + "-" + role},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}}))
	}
	as := func(user string) client.Client {
		config := rest.CopyConfig(server.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
		c, err := client.New(config, client.Options{Scheme: admin.Scheme()})
		must(t, err)
		return c
	}
	for _, user := range []string{"stranger", "viewer", "editor"} {
		bind("team", "slipway-edit", user)
	}
	bind("shared", "slipway-view", "viewer")
	bind("shared", "slipway-edit", "editor")
	const want = "you may not use ClusterClass local of namespace shared: get a role with the verb use on clusterclasses there"
	eventually(t, "policy and webhooks hold some time after they were made", func() error {
		for _, version := range []string{"v1beta2", "v1beta1"} {
			if err := as("stranger").Create(t.Context(), managedCluster(version, "stolen", "shared"), client.DryRunAll); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%s: %w", version, err)
			}
		}
		return nil
	})
	for _, version := range []string{"v1beta2", "v1beta1"} {
		if err := as("viewer").Create(t.Context(), managedCluster(version, "stolen", "shared")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: who reads the class may not use it: %v", version, err)
		}
		if err := as("editor").Create(t.Context(), managedCluster(version, "used-"+version, "shared")); err != nil {
			t.Errorf("%s: who may edit there uses the class: %v", version, err)
		}
		for name, namespace := range map[string]string{"own-" + version: "", "named-" + version: "team"} {
			if err := as("stranger").Create(t.Context(), managedCluster(version, name, namespace)); err != nil {
				t.Errorf("%s: a class of the namespace itself: %v", version, err)
			}
		}
		empty := managedCluster(version, "empty", "")
		empty.Object["spec"] = map[string]any{}
		refused := "should have at least 1 properties" // by the schema
		if version == "v1beta1" {
			empty.Object["spec"] = map[string]any{"paused": false, "infrastructureRef": map[string]any{}, "controlPlaneRef": map[string]any{}}
			refused = "one of infrastructureRef, controlPlaneRef and topology must be set"
		}
		if err := as("stranger").Create(t.Context(), empty); err == nil || !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: a Cluster of nothing: %v", version, err)
		}
	}
	given, own := &clusterv1.Cluster{}, &clusterv1.Cluster{}
	must(t, as("viewer").Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "used-v1beta2"}, given))
	given.Labels = map[string]string{"mine": "yes"}
	if err := as("viewer").Update(t.Context(), given); err != nil {
		t.Errorf("what is not about the class may change: %v", err)
	}
	must(t, as("viewer").Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "own-v1beta2"}, own))
	own.Spec.Topology.ClassRef.Namespace = "shared"
	if err := as("viewer").Update(t.Context(), own); !apierrors.IsForbidden(err) {
		t.Errorf("nor is a class of another namespace chosen later: %v", err)
	}
}

// managedCluster is a Cluster of namespace team with the class local, of a namespace where one is given.
func managedCluster(version, name, classNamespace string) *unstructured.Unstructured {
	topology := map[string]any{"version": "v1.36.3", "classRef": map[string]any{"name": "local"}}
	if classNamespace != "" {
		topology["classRef"].(map[string]any)["namespace"] = classNamespace
	}
	if version == "v1beta1" {
		topology = map[string]any{"version": "v1.36.3", "class": "local"}
		if classNamespace != "" {
			topology["classNamespace"] = classNamespace
		}
	}
	cluster := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"topology": topology}}}
	cluster.SetAPIVersion(clusterv1.GroupVersion.Group + "/" + version)
	cluster.SetKind("Cluster")
	cluster.SetNamespace("team")
	cluster.SetName(name)
	return cluster
}
