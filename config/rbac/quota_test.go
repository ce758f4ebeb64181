package rbac_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/examples"
)

// S10: the quota that the documentation gives counts every kind that "edit" may create, so that no kind fills the database for all.
func TestQuotaCountsWhatEditorsCreate(t *testing.T) {
	text, err := examples.Files.ReadFile("namespace-quota.yaml")
	if err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{}
	if err := yaml.UnmarshalStrict(text, quota); err != nil {
		t.Fatal(err)
	}
	rules := []rbacv1.PolicyRule{}
	for _, role := range bootstrappolicy.ClusterRoles() {
		if role.Name == "system:aggregate-to-edit" {
			rules = append(rules, role.Rules...)
		}
	}
	objects, err := rbac.Objects(rbac.Rights{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetName() == "slipway-edit" {
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				t.Fatal(err)
			}
			rules = append(rules, role.Rules...)
		}
	}
	if len(rules) < 10 {
		t.Fatalf("only %d rules were found", len(rules))
	}
	created := map[string]bool{}
	for _, rule := range rules {
		if !slices.Contains(rule.Verbs, "create") || slices.Contains(rule.APIGroups, "extensions") { // a group that is not served any more
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if strings.Contains(resource, "/") || resource == "events" { // which Slipway takes from editors
					continue
				}
				created[strings.TrimSuffix("count/"+resource+"."+group, ".")] = true
			}
		}
	}
	for name := range created {
		if _, counted := quota.Spec.Hard[corev1.ResourceName(name)]; !counted {
			t.Errorf("%s is not in examples/namespace-quota.yaml", name)
		}
	}
	for name := range quota.Spec.Hard {
		if !created[string(name)] && !strings.Contains(string(name), ".resource.k8s.io") { // depends on a feature gate
			t.Errorf("%s is nothing that an editor creates", name)
		}
	}
}
