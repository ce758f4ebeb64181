package plan

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// TestExplain runs the verb against an API server that decides who may read, and a manager's endpoint with the plan of one object.
func TestExplain(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{Objects: apiserver.CRDs(t, "Cluster", "ExtensionConfig")})
	api := kubernetes.NewForConfigOrDie(server.Config)
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "Foo", Name: "foo"}
	for _, name := range []string{"planned", "new"} {
		meta := metav1.ObjectMeta{Namespace: "default", Name: name}
		for _, o := range []client.Object{
			&corev1.ServiceAccount{ObjectMeta: meta}, &clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{InfrastructureRef: ref}},
		} {
			if err := server.Client(t, scheme).Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	extension := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "planned"}}
	extension.Spec.ClientConfig.URL = "https://example.org"
	if err := server.Client(t, scheme).Create(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	manager := serve(t, server.Config, api)
	certificate := filepath.Join(t.TempDir(), "ca.crt")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: manager.Certificate().Raw})
	if err := os.WriteFile(certificate, data, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, stranger := user(t, server.Config, api, "planned", true), user(t, server.Config, api, "new", false)
	admin, here := server.Kubeconfig, []string{"--manager", manager.URL, "--manager-ca", certificate}
	_, port, err := net.SplitHostPort(manager.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	held, err := datadir.Open(datadir.Dir(filepath.Join(t.TempDir(), "mgr")), datadir.Holder{PID: os.Getpid(), ManagerOf: server.Config.Host, Kubeconfig: admin, Diagnostics: port})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	for name, tc := range map[string]struct {
		reason, kubeconfig, object string
		flags                      []string
		kind                       fault.Kind
		says                       string
	}{
		"by certificate":    {"an administrator of slipway up has no token", admin, "cluster/planned", here, 0, "WaitingForX"},
		"by token":          {"", reader, "cl/planned", here, 0, "Ends when data changes: Secret s"},
		"JSON":              {"", admin, "Clusters.cluster.x-k8s.io/planned", append(here, "-o", "json"), 0, `"until": "change"`},
		"no namespace":      {"", admin, "extensionconfig/planned", here, 0, "Controllers with nothing to do and nothing to wait for: extensionconfig\n"},
		"through a tunnel":  {"", admin, "cl/planned", []string{"--manager", manager.URL, "--manager-insecure"}, 0, "WaitingForX"},
		"no plan":           {"", admin, "cl/new", here, 0, "there is no plan of Cluster new in namespace default"},
		"chain":             {"what is wrong comes first", admin, "cl/planned", here, 0, "Cluster default/planned is not as it should be"},
		"remedy":            {"", admin, "cl/planned", here, 0, "What happens next"},
		"chain as JSON":     {"", admin, "cl/planned", append(here, "-o", "json"), 0, `"needsUser": false`},
		"everything":        {"", admin, "", here, 0, "No action is needed in namespace default.\n\nNot as it should be"},
		"all namespaces":    {"", admin, "", append(here, "-A"), 0, "in all namespaces"},
		"list as YAML":      {"", admin, "", append(here, "-o", "yaml"), 0, "needsUser: false"},
		"no manager":        {"with another implementation of Cluster API, or none", admin, "cl/planned", nil, 0, "conditions, owners and references alone"},
		"two of them":       {"", admin, "cl/planned", append(here, "-A"), fault.Invalid, "cannot be used with KIND/NAME"},
		"as a reader":       {"other objects cannot be read", reader, "cl/planned", here, 0, "Objects of these kinds are not considered"},
		"no object":         {"", admin, "cl/nothing", here, fault.Gone, "Cluster nothing in namespace default does not exist"},
		"not allowed":       {"the API server says so before the manager is called", stranger, "cl/planned", here, fault.Invalid, "rejected the request"},
		"no kind":           {"", admin, "nothing/planned", here, fault.Invalid, `no kind "nothing"`},
		"no name":           {"", admin, "planned", here, fault.Invalid, "is not KIND/NAME"},
		"other certificate": {"nothing is sent to a server that is not the manager", admin, "cl/planned", here[:2], fault.Unreachable, "certificate"},
		"insecure, remote":  {"", admin, "cl/planned", []string{"--manager", "https://192.0.2.1:1", "--manager-insecure"}, fault.Invalid, "use --manager-ca"},
		"plain HTTP":        {"", admin, "cl/planned", []string{"--manager", "http://127.0.0.1:1"}, fault.Invalid, "not an https URL"},
		"nothing there":     {"", admin, "cl/planned", []string{"--manager", "https://127.0.0.1:1", "--manager-ca", certificate}, fault.Unreachable, "cannot be reached"},
		"of a directory":    {"a manager of this machine", admin, "cl/planned", []string{"--data-dir", string(held.Dir)}, 0, "WaitingForX"},
		"the directory":     {"its kubeconfig, too", "", "cl/planned", []string{"--data-dir", string(held.Dir)}, 0, "WaitingForX"},
		"which manager":     {"the cluster is not that of the data directory", admin, "cl/planned", nil, 0, "is not the management cluster of"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			e := term.Env{Out: &out, Err: &out, Now: time.Now, Getenv: func(name string) string {
				return map[string]string{"HOME": server.Dir}[name]
			}}
			cmd := ExplainCommand(e)
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			args := []string{"--data-dir", t.TempDir()}
			if tc.object != "" {
				args = append(args, tc.object)
			}
			if tc.kubeconfig != "" {
				args = append(args, "--kubeconfig", tc.kubeconfig)
			}
			cmd.SetArgs(append(args, tc.flags...))
			err := cmd.ExecuteContext(t.Context())
			got := out.String()
			if err != nil {
				got += fault.UserMessage(err)
			}
			if strings.Contains(got, "resource name may not be empty") {
				t.Errorf("an object without a name was read:\n%s", got)
			}
			if fault.KindOf(err) != tc.kind || (err != nil) != (tc.kind != 0) || !strings.Contains(got, tc.says) {
				t.Errorf("%s: %v\n%s", tc.reason, err, got)
			}
		})
	}
}

// serve is a manager's endpoint with the plans of two objects, as package manager sets it up.
func serve(t *testing.T, config *rest.Config, api kubernetes.Interface) *httptest.Server {
	var store manager.PlanStore
	var p reconciler.Plan
	p.WaitFor("WaitingForX", "Waiting for Secret s").For("Secret", "s").ToChange("data")
	store.Store(reconciler.PlanKey{Controller: "cluster", Kind: schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, Key: client.ObjectKey{Namespace: "default", Name: "planned"}}, p, nil)
	store.Store(reconciler.PlanKey{Controller: "extensionconfig", Kind: schema.GroupKind{Group: "runtime.cluster.x-k8s.io", Kind: "ExtensionConfig"}, Key: client.ObjectKey{Name: "planned"}}, reconciler.Plan{}, nil)
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(config.CAData) {
		t.Fatal("no authority")
	}
	s := httptest.NewUnstartedServer(http.Handler(&manager.PlanHandler{Store: &store, API: api}))
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authorities}
	s.Config.ErrorLog = nil
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// user is the kubeconfig of a ServiceAccount with a token.
func user(t *testing.T, config *rest.Config, api kubernetes.Interface, name string, may bool) string {
	t.Helper()
	if may {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get"}}}}
		if _, err := api.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}}}
		if _, err := api.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token, err := api.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
