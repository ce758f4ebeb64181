package controlplane

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// Who may edit a namespace writes no Events, also where kube-apiserver or an earlier version made the role; other rules stay.
func TestEditorsWriteNoEvents(t *testing.T) {
	all := bootstrappolicy.ClusterRoles()
	role := all[slices.IndexFunc(all, func(r rbacv1.ClusterRole) bool { return r.Name == editors })]
	for name, exist := range map[string][]runtime.Object{"new": nil, "there": {role.DeepCopy()}} {
		c := fake.NewClientset(exist...)
		if err := narrowEditors(t.Context(), c.RbacV1().ClusterRoles(), *role.DeepCopy(), false); err != nil {
			t.Fatal(err)
		}
		got, err := c.RbacV1().ClusterRoles().Get(t.Context(), editors, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		writes := slices.ContainsFunc(got.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "events") })
		if writes || len(got.Rules) != len(role.Rules)-1 || got.Annotations[rbacv1.AutoUpdateAnnotationKey] != "false" {
			t.Errorf("%s: %v, %d rules of %d", name, got.Annotations, len(got.Rules), len(role.Rules))
		}
		c.ClearActions()
		if err := narrowEditors(t.Context(), c.RbacV1().ClusterRoles(), *role.DeepCopy(), false); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(c.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "update" }) {
			t.Errorf("%s: written although nothing differs: %v", name, c.Actions())
		}
	}
}

// TestEditorsWithoutSecrets: the operator's switch takes Secrets, and nothing else, from the role, and gives them back.
func TestEditorsWithoutSecrets(t *testing.T) { // CX-08
	all := bootstrappolicy.ClusterRoles()
	role := all[slices.IndexFunc(all, func(r rbacv1.ClusterRole) bool { return r.Name == editors })]
	resources := func(rules []rbacv1.PolicyRule) (secrets, all int) {
		for _, r := range rules {
			all += len(r.Resources)
			if slices.Contains(r.Resources, "secrets") {
				secrets++
			}
		}
		return secrets, all
	}
	c := fake.NewClientset()
	var with int
	for _, hidden := range []bool{false, true, false} {
		if err := narrowEditors(t.Context(), c.RbacV1().ClusterRoles(), *role.DeepCopy(), hidden); err != nil {
			t.Fatal(err)
		}
		got, err := c.RbacV1().ClusterRoles().Get(t.Context(), editors, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		secrets, all := resources(got.Rules)
		if !hidden {
			with = all
		}
		if hidden != (secrets == 0) || hidden && (with == 0 || all >= with || all < with-2) {
			t.Errorf("hidden %v: %d rules about secrets, %d resources in all, %d with them", hidden, secrets, all, with)
		}
	}
}
