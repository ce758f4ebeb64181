package rbac_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// CT-03: the core may use every kind of a provider, and no kind is forgotten when one is added.
func TestEveryKindIsCovered(t *testing.T) {
	objects, err := rbac.Objects(rbac.Rights{})
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" || object.GetName() != rbac.RoleOf(providerset.Core) && object.GetLabels()["cluster.x-k8s.io/aggregate-to-manager"] != "true" {
			continue
		}
		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	list, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range list {
		if providerset.OfCRD(crd.Name) == providerset.Core || crd.Spec.Names.Kind == "SSHHost" { // the inventory of the operator, which the core never refers to
			continue
		}
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			if !covers(rules, verb, crd.Spec.Group, crd.Spec.Names.Plural) {
				t.Errorf("the core may not %s %s", verb, crd.Name)
			}
		}
	}
}

func covers(rules []rbacv1.PolicyRule, verb, group, resource string) bool {
	has := func(list []string, want string) bool {
		for _, item := range list {
			if item == want || item == "*" {
				return true
			}
		}
		return false
	}
	for _, rule := range rules {
		if has(rule.Verbs, verb) && has(rule.APIGroups, group) && has(rule.Resources, resource) && len(rule.ResourceNames) == 0 {
			return true
		}
	}
	return false
}

// RB-01: on an API server, what the manager and people may do after the roles have been aggregated.
func TestAggregation(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rbac.Objects(rbac.Rights{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		config := client.ApplyConfigurationFromUnstructured(object)
		if err := c.Apply(t.Context(), config, client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
	}
	const inCluster = "system:serviceaccount:" + rbac.Namespace + ":" + rbac.ServiceAccount
	want := map[string]bool{
		rbac.User + " patch clusters.cluster.x-k8s.io":                                   true,
		rbac.User + " update localmachinepools.infrastructure.slipway.dev/finalizers":    true,
		rbac.User + " patch hostedcontrolplanes.controlplane.slipway.dev/status":         true,
		rbac.User + " create secrets":                                                    true,
		rbac.User + " delete namespaces":                                                 false,
		rbac.User + " create pods":                                                       false,
		rbac.User + " create clusterrolebindings.rbac.authorization.k8s.io":              false,
		rbac.User + " patch foreignclusters.infrastructure.example.org":                  false,
		rbac.User + " patch foreignclusters.infrastructure.cluster.x-k8s.io":             true, // M06
		rbac.User + " create foreignmachines.infrastructure.cluster.x-k8s.io":            true,
		rbac.User + " update foreignclusters.infrastructure.cluster.x-k8s.io/finalizers": true,
		inCluster + " patch machines.cluster.x-k8s.io":                                   true,
		"stranger get clusters.cluster.x-k8s.io":                                         false,
	}
	got := map[string]bool{}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for question := range want {
			allowed, err := ask(ctx, c, question)
			if err != nil {
				return false, err
			}
			got[question] = allowed
		}
		return cmp.Equal(want, got), nil
	})
	if err != nil {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	edit := &rbacv1.ClusterRole{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "edit"}, edit); err != nil {
		t.Fatal(err)
	}
	if !covers(edit.Rules, "create", "cluster.x-k8s.io", "clusters") {
		t.Error("whoever may edit a namespace may not make a cluster in it")
	}
	foreign := &rbacv1.ClusterRole{}
	foreign.Name = "foreign-provider"
	foreign.Labels = map[string]string{"cluster.x-k8s.io/aggregate-to-manager": "true"}
	foreign.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{"infrastructure.example.org"}, Resources: []string{"foreignclusters"}, Verbs: []string{"patch"},
	}}
	if err := c.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return ask(ctx, c, rbac.User+" patch foreignclusters.infrastructure.example.org")
	})
	if err != nil {
		t.Errorf("CT-03: the rights that a foreign provider brings do not reach the manager: %v", err)
	}
}

// ask puts a question of the form "user verb resource.group/subresource".
func ask(ctx context.Context, c client.Client, question string) (bool, error) {
	words := strings.Fields(question)
	resource, subresource, _ := strings.Cut(words[2], "/")
	resource, group, _ := strings.Cut(resource, ".")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: words[0],
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "default", Verb: words[1], Group: group, Resource: resource, Subresource: subresource,
		},
	}}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}
