package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	localv1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/admission"
	"github.com/slipwayhq/slipway/internal/controlplane"
	"github.com/slipwayhq/slipway/internal/conversion"
	"github.com/slipwayhq/slipway/internal/manager/webhook"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const namespace = "slipway-system"

// world is an API server with everything installed, and the webhooks that it calls.
type world struct {
	server       *apiserver.Server
	client       client.Client
	address      webhook.Address
	certificates *webhook.Certificates
	calls        *calls
}

// calls counts requests by path.
type calls struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *calls) of(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[path]
}

// counting is a webhook server that counts.
type counting struct {
	ctrlwebhook.Server
	calls *calls
}

func (c counting) Register(path string, handler http.Handler) {
	c.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.calls.mu.Lock()
		c.calls.counts[path]++
		c.calls.mu.Unlock()
		handler.ServeHTTP(w, r)
	}))
}

func TestAPIServer(t *testing.T) {
	w := newWorld(t, admission.Gates{})
	for name, test := range map[string]func(*testing.T, *world){
		"admission":      testAdmission,
		"callers":        testCallers,
		"calls":          testCalls,
		"bad input":      testBadInput,
		"control planes": testControlPlaneMistakes,
		"conversion":     testConversion,
		"explain":        testExplain,
		"extensions":     testExtensions,
		"our own kinds":  testOwnKinds,
		"templates":      testTemplates,
		"forged":         testForged,
		"stored before":  testForgedBefore,
		"not forged":     testForgedCalls,
		"installation":   testInstallation,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

func newWorld(t *testing.T, gates admission.Gates) *world {
	t.Helper()
	w := &world{server: apiserver.Start(t, apiserver.Options{}), calls: &calls{counts: map[string]int{}}}
	w.client = newClient(t, w.server)
	if err := w.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	w.address = webhook.Address{URL: fmt.Sprintf("https://127.0.0.1:%d", port), MostReplicas: policy.Default().Maxima.Replicas}
	w.certificates = webhook.NewCertificates(w.client, namespace, w.address)
	if err := w.certificates.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	serve(t, w, port, gates)
	begin := time.Now()
	if err := webhook.Install(t.Context(), w.client, w.address, w.certificates.CA()); err != nil {
		t.Fatal(err)
	}
	t.Logf("installed in %s", time.Since(begin).Round(time.Millisecond))
	return w
}

func newClient(t *testing.T, server *apiserver.Server) client.Client {
	t.Helper()
	converter, err := conversion.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	scheme := converter.Scheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, localv1.AddToScheme, hostedv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// serve runs the webhooks until the test ends.
func serve(t *testing.T, w *world, port int, gates admission.Gates) {
	t.Helper()
	authority, err := os.ReadFile(filepath.Join(w.server.Dir, "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{
		Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){w.certificates.Serve, webhook.VerifyCallers(authority)},
	})
	opts := webhook.Options{Gates: gates, Policy: policy.Default(), VersionOf: webhook.CRDVersions(w.client), Live: w.client, Caller: controlplane.WebhookUser}
	if err := webhook.Register(counting{server, w.calls}, opts); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	started := server.StartedChecker()
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return started(nil) == nil, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// S5: a user of the host without credentials, and an administrator with a certificate of the same authority, get nothing from any path.
func testCallers(t *testing.T, w *world) {
	admin, err := rest.TLSConfigFor(w.server.Config)
	if err != nil {
		t.Fatal(err)
	}
	for who, certificate := range map[string]func(*tls.CertificateRequestInfo) (*tls.Certificate, error){"nobody": nil, "the administrator": admin.GetClientCertificate} {
		config := &tls.Config{RootCAs: x509.NewCertPool(), GetClientCertificate: certificate}
		if certificate != nil {
			config.Certificates = admin.Certificates
		}
		config.RootCAs.AppendCertsFromPEM(w.certificates.CA())
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		for _, path := range []string{"/mutate", "/validate", "/convert"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.address.URL+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			response, err := c.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s from %s: %s", path, who, response.Status)
			}
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
