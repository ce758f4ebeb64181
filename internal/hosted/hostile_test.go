package hosted

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/hosted/addons"
	"github.com/slipwayhq/slipway/internal/hosted/backend"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/kubeadm/secrets"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// workloadAPI is an API server of the authority in a cluster's Secret, which notes who calls it.
type workloadAPI struct {
	*httptest.Server
	mu    sync.Mutex
	users []string
}

func newWorkloadAPI(t *testing.T, authority *corev1.Secret, at time.Time) *workloadAPI {
	t.Helper()
	ca, err := pki.ParsePair(authority.Data["tls.crt"], authority.Data["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := ca.Issue(pki.Leaf{User: "kube-apiserver", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, at)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
	if err != nil {
		t.Fatal(err)
	}
	w := &workloadAPI{}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		who := "no one"
		if len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		w.users = append(w.users, who)
		rw.WriteHeader(http.StatusOK)
	}))
	w.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	w.StartTLS()
	t.Cleanup(w.Close)
	return w
}

// A kubeconfig Secret of a tenant that runs a command for its credentials, in both places where one is possible: a
// Secret of the user, which is left alone, and one of ours that was changed. The add-ons are applied without it.
func TestKubeconfigRunsNoCommand(t *testing.T) { // RC-01, SE-02
	for name, change := range map[string]func(*corev1.Secret){
		"of the user":      func(s *corev1.Secret) { s.Type, s.OwnerReferences = corev1.SecretTypeOpaque, nil },
		"ours and changed": func(*corev1.Secret) {},
	} {
		t.Run(name, func(t *testing.T) {
			witness := filepath.Join(t.TempDir(), "executed")
			at := time.Now()
			s := running(t, func(s *snapshot) { s.Now = at })
			ca := s.Secrets[purposeCA]
			data, err := secrets.Generate(purposeCA, secrets.KeyOptions{}, s.Now) // valid now
			if err != nil {
				t.Fatal(err)
			}
			ca.Data = data
			workload := newWorkloadAPI(t, ca, at)
			secret := s.Secrets[purposeKubeconfig]
			change(secret)
			secret.Data["value"] = hostileKubeconfig(workload.URL, witness)
			objects := []client.Object{plane(), cluster()}
			for _, o := range s.Secrets {
				objects = append(objects, o)
			}
			api := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...).WithStatusSubresource(&hostedv1.HostedControlPlane{}).Build()
			ctl := &controller{client: api, cache: api, backends: backends(processes{&backend.ControlPlane{}, workload.Listener.Addr().String()}),
				gateways: gateway{}, now: func() time.Time { return at }, applyObjects: callOnce, inspect: inspected}
			r := &reconciler.Reconciler[*hostedv1.HostedControlPlane, snapshot]{Controller: ctl.definition(), Client: api, Writer: kube.NewWriter(api, Name), Now: ctl.now}
			ctl.writer = r.Writer
			for range 6 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "p"}}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(witness); err == nil {
				t.Error("the command of the tenant was executed")
			}
			workload.mu.Lock()
			defer workload.mu.Unlock()
			if len(workload.users) == 0 || workload.users[0] != controllerUser {
				t.Errorf("the add-ons were applied by %v, want %s", workload.users, controllerUser)
			}
			got := &corev1.Secret{}
			if err := api.Get(context.Background(), client.ObjectKeyFromObject(secret), got); err != nil {
				t.Fatal(err)
			}
			if ours := got.Type == clusterv1.ClusterSecretType; ours == strings.Contains(string(got.Data["value"]), "exec") {
				t.Errorf("a Secret of ours is written anew, one of the user is left alone: ours %v\n%s", ours, got.Data["value"])
			}
		})
	}
}

// callOnce is the first call of many that add-ons are applied with: it runs the command where there is one.
func callOnce(ctx context.Context, access *rest.Config, _ addons.Params) error {
	api, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	return api.RESTClient().Get().AbsPath("/").Do(ctx).Error()
}

func hostileKubeconfig(server, witness string) []byte {
	return []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
  clusters: [{name: k, cluster: {server: "` + server + `"}}],
  users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ["` + witness + `"], interactiveMode: Never}}}]}`)
}

// A configuration that a tenant plants beside a certificate does not reach the control plane's folder.
func TestAuthoritiesAreFilesOfPEMAlone(t *testing.T) { // SE-02
	hostile := "apiVersion: audit.k8s.io/v1\nkind: Policy\n---\n"
	s := running(t)
	for _, p := range authorities() {
		for key, value := range s.Secrets[p].Data {
			s.Secrets[p].Data[key] = []byte(hostile + string(value) + hostile)
		}
	}
	content, err := files(s)
	if err != nil || len(content) != 8 {
		t.Fatalf("%d files, %v", len(content), err)
	}
	for name, data := range content {
		if strings.Contains(string(data), "Policy") || !strings.HasPrefix(string(data), "-----BEGIN ") {
			t.Errorf("%s contains more than PEM:\n%s", name, data)
		}
	}
}
