package rbac_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/internal/providerset"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// M3: who may do what, by identity, where each provider has one. The file is to be read by people: a rule that is new in it
// is a right that is given.
func TestRolesOfEachProvider(t *testing.T) {
	var out strings.Builder
	out.WriteString("# What each identity of slipway up may do. go test ./config/rbac -run TestRolesOfEachProvider -update\n")
	granted := grants(t, rbac.Rights{Separate: true})
	write := func(user string) {
		fmt.Fprintf(&out, "\n## %s\n\n", user)
		for _, line := range granted[user] {
			fmt.Fprintln(&out, line)
		}
	}
	write(rbac.User)
	for _, set := range providerset.All() {
		if len(set.Controllers) > 0 {
			write(rbac.Rights{Separate: true}.UserOf(set.Name))
		}
	}
	testkit.CompareGolden(t, "testdata/identities.txt", out.String())
}

// grants are the rules that bindings give each user, in lines; a rule that several roles have is named once.
func grants(t *testing.T, rights rbac.Rights) map[string][]string {
	t.Helper()
	objects, err := rbac.Objects(rights)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]string{}
	out, seen := map[string][]string{}, map[string]bool{}
	for _, o := range objects {
		switch o.GetKind() {
		case "ClusterRole", "Role":
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				t.Fatal(err)
			}
			key := o.GetKind() + "/" + o.GetName()
			rules[key] = append(rules[key], lines(role.Rules, o.GetNamespace())...)
			if role.Labels["cluster.x-k8s.io/aggregate-to-manager"] == "true" {
				rules["ClusterRole/slipway-manager"] = append(rules["ClusterRole/slipway-manager"], lines(role.Rules, "")...)
			}
		case "ClusterRoleBinding", "RoleBinding":
			binding := &rbacv1.ClusterRoleBinding{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, binding); err != nil {
				t.Fatal(err)
			}
			for _, subject := range binding.Subjects {
				for _, line := range rules[binding.RoleRef.Kind+"/"+binding.RoleRef.Name] {
					if !seen[subject.Name+line] {
						seen[subject.Name+line] = true
						out[subject.Name] = append(out[subject.Name], line)
					}
				}
			}
		}
	}
	return out
}

func lines(rules []rbacv1.PolicyRule, namespace string) []string {
	var out []string
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				line := strings.TrimSuffix(resource+"."+group, ".") + ": " + strings.Join(r.Verbs, " ")
				if len(r.ResourceNames) > 0 {
					line += " of " + strings.Join(r.ResourceNames, " ")
				}
				if namespace != "" {
					line += " in " + namespace
				}
				out = append(out, line)
			}
		}
	}
	return out
}

// A provider's role covers what its controllers reconcile: they patch it, report its status, and give it dependents.
func TestEveryProviderHasItsKinds(t *testing.T) {
	list, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range list {
		set := providerset.OfCRD(crd.Name)
		granted := strings.Join(grants(t, rbac.Rights{Separate: true})["slipway:manager:"+string(set)], "\n")
		resource := crd.Spec.Names.Plural + "." + crd.Spec.Group + ": get list"
		if !strings.Contains(granted, resource) && !strings.HasSuffix(crd.Spec.Names.Plural, "templates") {
			t.Errorf("%s may not read %s", set, crd.Name)
		}
	}
}

// Only the core has what foreign providers bring, and no one but the process has CRDs and webhook configurations.
func TestProvidersAreSeparated(t *testing.T) {
	for user, granted := range grants(t, rbac.Rights{Separate: true}) {
		if user == rbac.User {
			continue
		}
		for _, line := range granted {
			for _, never := range []string{"webhookconfigurations", "tokenreviews", "subjectaccessreviews", "leases", "roles", "impersonate"} {
				if strings.Contains(line, never) {
					t.Errorf("%s: %s", user, line)
				}
			}
			if strings.HasPrefix(line, "customresourcedefinitions") && line != "customresourcedefinitions.apiextensions.k8s.io: get list watch" {
				t.Errorf("%s: %s", user, line)
			}
		}
	}
	all := grants(t, rbac.Rights{Sets: providerset.Without(providerset.Others(providerset.InfrastructureLocal)...), Separate: true})
	for user, granted := range all {
		for _, line := range granted {
			if strings.Contains(line, "kubeadm") || strings.Contains(line, "configmaps") || strings.Contains(line, "secrets: get list") {
				t.Errorf("infrastructure-local alone, %s: %s", user, line)
			}
		}
	}
}

// M3: on an API server, what each identity of slipway up is given and refused.
func TestIdentitiesOverAPIServer(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	c := administrator(t, server)
	rights := rbac.Rights{Separate: true}
	objects, err := rbac.Objects(rights)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
	}
	core, bootstrap := rights.UserOf(providerset.Core), rights.UserOf(providerset.BootstrapKubeadm)
	hosted, local := rights.UserOf(providerset.ControlPlaneHosted), rights.UserOf(providerset.InfrastructureLocal)
	const hook = "validatingwebhookconfigurations.admissionregistration.k8s.io"
	want := map[string]bool{
		core + " create machines.cluster.x-k8s.io": true, core + " delete localmachines.infrastructure.slipway.dev": true,
		core + " patch localmachines.infrastructure.slipway.dev/status": false, core + " delete secrets": false, core + " create " + hook: false,
		bootstrap + " create secrets": true, bootstrap + " list configmaps": false, bootstrap + " patch machines.cluster.x-k8s.io": false,
		hosted + " create secrets": true, hosted + " list localmachines.infrastructure.slipway.dev": false, hosted + " create " + hook: false,
		local + " get secrets": true, local + " list secrets": false, local + " watch secrets": false, local + " patch secrets": false,
		local + " create " + hook: false, local + " patch customresourcedefinitions.apiextensions.k8s.io": false,
		local + " patch clusters.cluster.x-k8s.io": false, local + " patch localmachines.infrastructure.slipway.dev/status": true,
		rbac.User + " watch secrets": true, rbac.User + " create machines.cluster.x-k8s.io": false, rbac.User + " patch secrets": false,
	}
	got := map[string]bool{}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for question := range want {
			var err error
			if got[question], err = ask(ctx, c, question); err != nil {
				return false, err
			}
		}
		return cmp.Equal(want, got), nil
	})
	if err != nil {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, got))
	}
	config := rest.CopyConfig(server.Config) // and a request itself is refused, not only a review
	config.Impersonate = rest.ImpersonationConfig{UserName: local}
	played, err := client.New(config, client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := played.List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("infrastructure-local lists Secrets: %v", err)
	}
}
