package manager_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/operate/kubeconfig"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestClusterCredentials: who has role "edit" in the namespace of a Cluster gets credentials of it from the manager without reading its
// Secrets, and nobody else does.
func TestClusterCredentials(t *testing.T) { // CX-08
	server := apiserver.Start(t, apiserver.Options{})
	c := newClient(t, server)
	for _, name := range []string{"ns", "other"} {
		must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	startProcess(t, server)
	createFleet(t, c, "ns")
	eventually(t, "the cluster has a kubeconfig", func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "fleet-kubeconfig"}, &corev1.Secret{})
	})
	must(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "requesters"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "slipway-credentials-requester"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "people"}},
	}))
	// A role without Secrets: all that is needed is the verb.
	must(t, c.Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "connect"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"connect"}}},
	}))
	bind := func(namespace, kind, role, user string) {
		must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}))
	}
	bind("ns", "Role", "connect", "anna")
	bind("ns", "ClusterRole", "edit", "eve")
	bind("ns", "ClusterRole", "view", "bert")
	bind("other", "ClusterRole", "edit", "mallory")

	as := func(user string) kubernetes.Interface {
		config := rest.CopyConfig(server.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"people"}}
		api, err := kubernetes.NewForConfig(config)
		must(t, err)
		return api
	}
	fleet := client.ObjectKey{Namespace: "ns", Name: "fleet"}
	request := kubeconfig.CredentialsRequest{User: "anna", Groups: []string{"team-a"}, Validity: time.Hour}
	if _, err := as("anna").CoreV1().Secrets("ns").Get(t.Context(), "fleet-kubeconfig", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("anna reads the administrator's kubeconfig: %v", err)
	}
	for _, user := range []string{"anna", "eve"} {
		var issued kubeconfig.Credentials
		eventually(t, user+" gets credentials", func() (err error) { // her rights reach the API server a moment later
			issued, err = kubeconfig.RequestFrom(t.Context(), as(user), fleet, request)
			return err
		})
		checkCredentials(t, issued)
	}
	for _, user := range []string{"bert", "mallory"} {
		_, err := kubeconfig.RequestFrom(t.Context(), as(user), fleet, request)
		if err == nil || !strings.Contains(err.Error(), "you may not connect to Cluster ns/fleet") {
			t.Errorf("%s has no right to connect: %v", user, err)
		}
	}
	// The policy of admission does not apply to requests that are created with its rules met; the manager checks what is in them.
	for user, groups := range map[string][]string{"masters": {"system:masters"}, "admins": {"kubeadm:cluster-admins"}} {
		_, err := as("eve").CertificatesV1().CertificateSigningRequests().Create(t.Context(), signingRequest(t, user, groups), metav1.CreateOptions{})
		must(t, err)
		eventually(t, "the request for "+groups[0]+" is denied", func() error {
			r, err := as("eve").CertificatesV1().CertificateSigningRequests().Get(t.Context(), user, metav1.GetOptions{})
			if err != nil {
				return err
			}
			text, _ := json.Marshal(r.Status)
			if !strings.Contains(string(text), "is reserved") || len(r.Status.Certificate) > 0 || r.Status.Conditions[0].Type != certificatesv1.CertificateDenied {
				return fmt.Errorf("status %s", text)
			}
			return nil
		})
	}
}

// checkCredentials: the workload cluster knows the user and the group, and gives them no right by itself.
func checkCredentials(t *testing.T, issued kubeconfig.Credentials) {
	t.Helper()
	text, err := issued.Kubeconfig(nil, "fleet", "anna")
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	must(t, err)
	workload, err := kubernetes.NewForConfig(config)
	must(t, err)
	_, err = workload.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "anna"`) {
		t.Errorf("Nodes as anna: %v", err)
	}
	if left := time.Until(issued.Expires); left > time.Hour || left < 50*time.Minute {
		t.Errorf("valid for %s", left)
	}
}

// signingRequest is a request for any user and groups.
func signingRequest(t *testing.T, user string, groups []string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}, key)
	must(t, err)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: "clusters.slipway.dev/ns.fleet",
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}
