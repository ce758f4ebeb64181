package rbac_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager/crds"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// tenant is the namespace in which the people of this test have a role each.
const tenant = "team-a"

// people are bound to a role in the namespace tenant; the manager is bound to its own everywhere.
var people = [...]struct{ user, role string }{
	{"viewer", "view"}, {"editor", "edit"}, {"admin", "admin"}, {"operator", rbac.ClusterOperator}, {rbac.User, ""},
}

// verbs with the letter that stands for each in the golden file.
var verbs = [...]struct{ name, letter string }{
	{"get", "g"}, {"list", "l"}, {"watch", "w"}, {"create", "c"}, {"update", "u"}, {"patch", "p"}, {"delete", "d"}, {"deletecollection", "D"},
}

// resource is one that requests are made for.
type resource struct {
	group, version, kind, plural, subresource string
	cluster                                   bool // has no namespace
}

func (r resource) String() string {
	name := r.plural
	if r.group != "" {
		name += "." + r.group
	}
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	return name
}

// path of an object, or of all of them in the namespace where name is empty.
func (r resource) path(name string) string {
	path := "/apis/" + r.group + "/" + r.version
	if r.group == "" {
		path = "/api/" + r.version
	}
	if !r.cluster {
		path += "/namespaces/" + tenant
	}
	path += "/" + r.plural
	if name != "" {
		path += "/" + name
	}
	if r.subresource != "" {
		path += "/" + r.subresource
	}
	return path
}

// resources are every kind that a CRD of this build defines, with its subresources, and what stands beside them.
func resources(t *testing.T) []resource {
	t.Helper()
	list, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	out := []resource{
		{version: "v1", kind: "ConfigMap", plural: "configmaps"}, {version: "v1", kind: "Secret", plural: "secrets"},
		// What bounds a namespace is not its editors' to change; nor are Events theirs to write, which no quota counts.
		{version: "v1", kind: "Event", plural: "events"}, {version: "v1", kind: "LimitRange", plural: "limitranges"},
		{version: "v1", kind: "ResourceQuota", plural: "resourcequotas"},
	}
	for _, crd := range list {
		r := resource{
			group: crd.Spec.Group, kind: crd.Spec.Names.Kind, plural: crd.Spec.Names.Plural,
			cluster: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
		}
		subresources := []string{"", "finalizers"}
		for _, v := range crd.Spec.Versions {
			if !v.Storage {
				continue
			}
			r.version = v.Name
			if v.Subresources != nil && v.Subresources.Status != nil {
				subresources = append(subresources, "status")
			}
			if v.Subresources != nil && v.Subresources.Scale != nil {
				subresources = append(subresources, "scale")
			}
		}
		for _, r.subresource = range subresources {
			out = append(out, r)
		}
	}
	return out
}

// requested returns how the verb is asked for, all of it without effect.
func (r resource) requested(ctx context.Context, host, verb string) (*http.Request, error) {
	object, err := json.Marshal(map[string]any{
		"apiVersion": strings.TrimPrefix(r.group+"/"+r.version, "/"), "kind": r.kind, "metadata": map[string]any{"name": "x"},
	})
	if err != nil {
		return nil, err
	}
	all := strings.TrimSuffix(r.path(""), "/"+r.subresource)
	var method, url, kind string
	var body []byte
	switch verb {
	case "get":
		method, url = http.MethodGet, r.path("x")
	case "list":
		method, url = http.MethodGet, all
	case "watch":
		method, url = http.MethodGet, all+"?watch=1&timeoutSeconds=1"
	case "create":
		method, url, body, kind = http.MethodPost, all+"?dryRun=All", object, "application/json"
	case "update":
		method, url, body, kind = http.MethodPut, r.path("x")+"?dryRun=All", object, "application/json"
	case "patch":
		method, url, body, kind = http.MethodPatch, r.path("x")+"?dryRun=All", []byte("{}"), "application/merge-patch+json"
	case "delete":
		method, url = http.MethodDelete, r.path("x")+"?dryRun=All"
	case "deletecollection":
		method, url = http.MethodDelete, all+"?dryRun=All"
	}
	request, err := http.NewRequestWithContext(ctx, method, host+url, bytes.NewReader(body))
	if err == nil && kind != "" {
		request.Header.Set("Content-Type", kind)
	}
	return request, err
}

// asked returns what a SubjectAccessReview says.
func (r resource) asked(ctx context.Context, c client.Client, user, verb string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: tenant, Verb: verb, Group: r.group, Version: r.version, Resource: r.plural, Subresource: r.subresource,
		},
	}}
	if r.cluster {
		review.Spec.ResourceAttributes.Namespace = ""
	}
	err := c.Create(ctx, review)
	return review.Status.Allowed, err
}

// Row 1 of the tenants: which verbs each role has on every kind and subresource, by review and by request; both are the
// same. A change of testdata/people.txt is a change of what tenants may do.
func TestWhoMayDoWhat(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	c := installed(t, server)
	table := &strings.Builder{}
	w := tabwriter.NewWriter(table, 0, 4, 2, ' ', 0)
	header := []string{"g get, l list, w watch, c create, u update, p patch, d delete, D deletecollection"}
	for _, p := range people {
		role := p.role
		if role == "" {
			role = p.user
		}
		header = append(header, role)
	}
	_, _ = fmt.Fprintln(w, strings.Join(header, "\t"))
	all := resources(t)
	rows := make([][]string, len(all))
	for i := range rows {
		rows[i] = make([]string, len(people))
	}
	group, ctx := errgroup.WithContext(t.Context())
	for n, p := range people {
		group.Go(func() error {
			for i, r := range all {
				allowed, err := allowedVerbs(ctx, c, server.Config, p.user, r)
				if err != nil {
					return err
				}
				rows[i][n] = allowed
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, r := range all {
		_, _ = fmt.Fprintln(w, strings.Join(append([]string{r.String()}, rows[i]...), "\t"))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	testkit.CompareGolden(t, "testdata/people.txt", table.String())
	for i, r := range all {
		for n, p := range people[:len(people)-1] {
			if (r.subresource == "status" || r.subresource == "finalizers") && rows[i][n] != "-" {
				t.Errorf("role %s may %s %s: controllers believe what is there", p.role, rows[i][n], r)
			}
			offered := strings.HasPrefix(r.kind, "SSH") && r.kind != "SSHHost" // of the hosts that the operator offers to the namespace for its users' commands
			host := strings.HasSuffix(r.group, ".slipway.dev") && !offered || strings.HasPrefix(r.kind, "Kubeadm")
			if host && p.role != rbac.ClusterOperator && strings.ContainsAny(rows[i][n], "cupdD") {
				t.Errorf("role %s may %s %s, which reaches the host or runs commands in nodes", p.role, rows[i][n], r)
			}
		}
	}
}

// allowedVerbs asks for each verb twice and makes one word of the letters.
func allowedVerbs(ctx context.Context, c client.Client, config *rest.Config, user string, r resource) (string, error) {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	played, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	word := ""
	for _, verb := range verbs {
		if r.subresource != "" && !slices.Contains([]string{"get", "update", "patch"}, verb.name) {
			continue
		}
		says, err := r.asked(ctx, c, user, verb.name)
		if err != nil {
			return "", err
		}
		request, err := r.requested(ctx, config.Host, verb.name)
		if err != nil {
			return "", err
		}
		response, err := played.Do(request)
		if err != nil {
			return "", err
		}
		answer := &metav1.Status{}
		if response.StatusCode == http.StatusForbidden {
			err = json.NewDecoder(response.Body).Decode(answer)
		}
		_ = response.Body.Close()
		if err != nil {
			return "", err
		}
		// A policy judges the content of a request that the user has the right to.
		refused := response.StatusCode == http.StatusForbidden && !strings.Contains(answer.Message, "ValidatingAdmissionPolicy")
		if refused == says {
			return "", fmt.Errorf("%s %s %s: a review says %v, the request was answered %s", user, verb.name, r, says, response.Status)
		}
		if says {
			word += verb.letter
		}
	}
	if word == "" {
		word = "-"
	}
	return word, nil
}

// installed applies the roles, binds people, installs CRDs, and waits until the aggregated roles are there.
func installed(t *testing.T, server *apiserver.Server) client.Client {
	t.Helper()
	c := administrator(t, server)
	if err := crds.Install(t.Context(), c, crds.Options{}); err != nil {
		t.Fatal(err)
	}
	applyRoles(t, c)
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range people {
		if p.role == "" {
			continue
		}
		err := c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: p.role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: p.role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: p.user}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	clusters := resource{group: "cluster.x-k8s.io", version: "v1beta2", plural: "clusters"}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, p := range people {
			if allowed, err := clusters.asked(ctx, c, p.user, "get"); err != nil || !allowed {
				return false, err
			}
		}
		admin, err := clusters.asked(ctx, c, "admin", "delete")
		editor, err2 := clusters.asked(ctx, c, "editor", "delete")
		if err == nil {
			err = err2
		}
		return admin && editor, err
	})
	if err != nil {
		t.Fatalf("waiting for the aggregated roles: %v", err)
	}
	return c
}

func administrator(t *testing.T, server *apiserver.Server) client.Client {
	t.Helper()
	return clientOf(t, server.Config)
}

func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func applyRoles(t *testing.T, c client.Client) {
	t.Helper()
	objects, err := rbac.Objects(rbac.Rights{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
	}
}

// The manager writes the CRDs and webhook configurations of this build alone, creates them, too, and only by name: another
// CRD's conversion webhook sees every object of that kind.
func TestManagerWritesItsOwnDefinitionsAlone(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	c := administrator(t, server)
	applyRoles(t, c)
	config := rest.CopyConfig(server.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: rbac.User}
	played, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	const (
		crdPath        = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
		mutatingPath   = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/"
		validatingPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
	)
	want := map[string]bool{
		crdPath + "widgets.example.org": false, mutatingPath + "slipway-defaulting-cluster-api": true, mutatingPath + "other": false,
		validatingPath + "slipway-validation-cluster-api": true, validatingPath + "other": false,
	}
	for _, crd := range list {
		want[crdPath+crd.Name] = true
	}
	apply := func(path string) (int, error) {
		kind, version := "CustomResourceDefinition", "apiextensions.k8s.io/v1"
		if strings.HasPrefix(path, mutatingPath) {
			kind, version = "MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"
		} else if strings.HasPrefix(path, validatingPath) {
			kind, version = "ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1"
		}
		name := path[strings.LastIndex(path, "/")+1:]
		body := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"name": %q}}`, version, kind, name)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, config.Host+path+"?dryRun=All&fieldManager=test", strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
		response, err := played.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		code, err := apply(mutatingPath + "slipway-defaulting-cluster-api") // the roles have been aggregated
		return code != http.StatusForbidden, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, allowed := range want {
		code, err := apply(path)
		if err != nil {
			t.Fatal(err)
		}
		if (code != http.StatusForbidden) != allowed {
			t.Errorf("the manager applies %s: %d, want allowed %v", path, code, allowed)
		}
	}
}
