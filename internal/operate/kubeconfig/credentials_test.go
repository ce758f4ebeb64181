package kubeconfig

import (
	"context"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// A person gets what the role gives, for some time, and nothing once the binding is gone; a new certificate does not bring it back.
func TestIssue(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	admin := kubernetes.NewForConfigOrDie(server.Config)
	now := time.Now()
	issue := func(r CredentialsRequest) (Credentials, kubernetes.Interface) {
		t.Helper()
		c, err := Issue(t.Context(), admin, r)
		if err != nil {
			t.Fatal(err)
		}
		file, err := c.Kubeconfig(server.Config, "demo", r.User)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(file)
		if err != nil {
			t.Fatal(err)
		}
		return c, kubernetes.NewForConfigOrDie(config)
	}
	anna := CredentialsRequest{User: "anna@example.org", Role: "cluster-admin", Validity: time.Hour}
	credentials, client := issue(anna)
	if left := credentials.Expires.Sub(now); left < 50*time.Minute || left > 70*time.Minute {
		t.Errorf("it ends after %s", left)
	}
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || who.Status.UserInfo.Username != anna.User || strings.Contains(strings.Join(who.Status.UserInfo.Groups, " "), "system:masters") {
		t.Errorf("%v, %+v", err, who.Status.UserInfo)
	}
	until(t, "the rights", func(ctx context.Context) bool {
		_, err := client.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
		return err == nil
	})
	_, viewer := issue(CredentialsRequest{User: "ben", Role: "view", Validity: time.Hour})
	until(t, "the rights of view", func(ctx context.Context) bool {
		_, err := viewer.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		return err == nil
	})
	if _, err := viewer.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("view reads no Secrets: %v", err)
	}

	if err := admin.RbacV1().ClusterRoleBindings().Delete(t.Context(), credentials.Binding, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the rights to end", func(ctx context.Context) bool {
		_, err := client.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{})
		return apierrors.IsForbidden(err)
	})
	issue(anna)
	if _, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("what was revoked has rights again: %v", err)
	}
	if left, err := admin.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{}); err != nil || len(left.Items) > 0 {
		t.Errorf("requests are left: %v, %v", err, left)
	}

	bindings, err := admin.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{LabelSelector: userLabel})
	if err != nil || len(bindings.Items) != 2 {
		t.Fatalf("what is valid stays: %v, %d left", err, len(bindings.Items))
	}
	for _, b := range bindings.Items {
		b.Annotations[expiresAnnotation] = now.Add(-time.Hour).UTC().Format(time.RFC3339)
		if _, err := admin.RbacV1().ClusterRoleBindings().Update(t.Context(), &b, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	issue(anna)
	bindings, err = admin.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{LabelSelector: userLabel})
	if err != nil || len(bindings.Items) != 1 {
		t.Errorf("what has expired is removed: %v, %d left", err, len(bindings.Items))
	}
}

func until(t *testing.T, what string, f func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !f(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// What cannot be issued leaves nothing.
func TestIssueRefuses(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	admin := kubernetes.NewForConfigOrDie(server.Config)
	mine := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: map[string]string{userLabel: "anna"}, Annotations: map[string]string{expiresAnnotation: "2001-01-01T00:00:00Z"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), mine, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		request CredentialsRequest
		says    string
	}{
		"no user":       {CredentialsRequest{Role: "view", Validity: time.Hour}, `"" is not the name of a user`},
		"system":        {CredentialsRequest{User: "system:admin", Role: "view", Validity: time.Hour}, "use the name of a user"},
		"no such role":  {CredentialsRequest{User: "anna", Role: "king", Validity: time.Hour}, `the workload cluster has no ClusterRole "king"`},
		"too short":     {CredentialsRequest{User: "anna", Role: "view", Validity: time.Minute}, "valid for 10m0s to 168h0m0s, not for 1m0s"},
		"too long":      {CredentialsRequest{User: "anna", Role: "view", Validity: 1000 * time.Hour}, "not for 1000h0m0s"},
		"another space": {CredentialsRequest{User: "anna ", Role: "view", Validity: time.Hour}, "without spaces around them"},
	} {
		if _, err := Issue(t.Context(), admin, tc.request); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bindings, err := admin.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{LabelSelector: userLabel})
	if err != nil || len(bindings.Items) != 1 || bindings.Items[0].Name != "mine" {
		t.Errorf("a binding that is not of this program stays, and no other is made: %v, %v", err, bindings.Items)
	}
}

func TestKubeconfig(t *testing.T) {
	administrator := &rest.Config{Host: "https://x", BearerToken: "root", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), ServerName: "x", KeyData: []byte("root")}}
	data, err := Credentials{Certificate: []byte("signed"), Key: []byte("mine")}.Kubeconfig(administrator, "demo", "anna")
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	user, cluster := got.AuthInfos["anna@demo"], got.Clusters["demo"]
	if got.CurrentContext != "anna@demo" || len(got.AuthInfos) != 1 || string(user.ClientKeyData) != "mine" || user.Token != "" ||
		cluster.Server != "https://x" || string(cluster.CertificateAuthorityData) != "ca" || cluster.TLSServerName != "x" {
		t.Errorf("%s", data)
	}
}

// A cluster without roles, as a simulated one is, has none to name.
func TestNoRoles(t *testing.T) {
	_, err := Issue(t.Context(), fake.NewClientset(), CredentialsRequest{User: "anna", Role: "view", Validity: time.Hour})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "as a simulated one has none") {
		t.Errorf("got %v", err)
	}
	other := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	_, err = Issue(t.Context(), fake.NewClientset(other), CredentialsRequest{User: "anna", Role: "view", Validity: time.Hour})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), `no ClusterRole "view": use an existing one`) {
		t.Errorf("got %v", err)
	}
}
