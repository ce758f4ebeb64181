package manager_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/config/rbac"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// patience is how long a busy machine may take for one step.
const patience = 2 * time.Minute

// process is `slipway manager` over an API server, with its own identity and rights.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	log string
	// diagnostics is the address of that endpoint.
	diagnostics string
	http        *http.Client
}

// startProcess starts the verb with more flags; it ends with the test.
func startProcess(t *testing.T, server *apiserver.Server, flags ...string) *process {
	t.Helper()
	return startProcessOver(t, server, impersonating(t, server), rbac.Rights{}, flags...)
}

// startProcessOver starts the verb with that kubeconfig and more flags, and installs the rights.
func startProcessOver(t *testing.T, server *apiserver.Server, kubeconfig string, rights rbac.Rights, flags ...string) *process {
	t.Helper()
	must(t, manager.Install(t.Context(), server.Config, rights))
	binary, err := apiserver.Binary()
	must(t, err)
	p := &process{t: t, log: filepath.Join(t.TempDir(), "log"), diagnostics: freeAddress(t)}
	// The certificate of the endpoint is made by the process for itself.
	p.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}, Timeout: patience}
	_, port, err := net.SplitHostPort(freeAddress(t))
	must(t, err)
	args := []string{"manager", "--kubeconfig", kubeconfig, "--data-dir", t.TempDir(), "--health-addr", "0",
		"--webhook-host", "127.0.0.1", "--webhook-port", port, "--diagnostics-address", p.diagnostics}
	p.cmd = exec.Command(binary, append(args, flags...)...)
	log, err := os.Create(p.log)
	must(t, err)
	p.cmd.Stderr, p.cmd.SysProcAttr = log, &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	must(t, p.cmd.Start())
	t.Cleanup(func() { p.stop(); _ = log.Close() })
	return p
}

// stop ends the process; a second call does nothing.
func (p *process) stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	kill := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil || p.t.Failed() {
		text, _ := os.ReadFile(p.log)
		p.t.Logf("the manager exited: %v\n%s", err, text[max(0, len(text)-16<<10):])
	}
}

// impersonating writes a kubeconfig that has the rights of the manager.
func impersonating(t *testing.T, server *apiserver.Server) string {
	t.Helper()
	cfg, err := clientcmd.LoadFromFile(server.Kubeconfig)
	must(t, err)
	for _, user := range cfg.AuthInfos {
		user.Impersonate = rbac.User
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*cfg, path))
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// eventually polls until f reports no problem.
func eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = f(); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("%s: %v", what, err)
}

func newClient(t *testing.T, server *apiserver.Server) client.Client {
	t.Helper()
	scheme, err := manager.NewScheme()
	must(t, err)
	c, err := client.New(server.Config, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// tokens returns the token of someone who may read diagnostics, as docs/metrics.md says, and of someone who may not.
func tokens(t *testing.T, c client.Client) (reader, stranger string) {
	t.Helper()
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "slipway-diagnostics"}, Rules: []rbacv1.PolicyRule{
			{NonResourceURLs: []string{"/metrics", "/debug/pprof/*", "/debug/flags/*"}, Verbs: []string{"get"}},
			{NonResourceURLs: []string{"/debug/flags/v"}, Verbs: []string{"put"}},
			{APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"clusters"}, Verbs: []string{"get"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "slipway-diagnostics"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "slipway-diagnostics"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
		},
	} {
		must(t, c.Create(t.Context(), o))
	}
	token := func(name string) string {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		must(t, c.Create(t.Context(), account))
		request := &authenticationv1.TokenRequest{}
		must(t, c.SubResource("token").Create(t.Context(), account, request))
		return request.Status.Token
	}
	return token("reader"), token("stranger")
}

// ask makes a request of the diagnostics, and returns the status and the body.
func (p *process) ask(scheme, method, path, token string) (int, string, error) {
	body := io.Reader(http.NoBody)
	if method == http.MethodPut {
		body = strings.NewReader("3")
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, scheme+"://"+p.diagnostics+path, body)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := p.http.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

func TestDiagnosticsOverAPIServer(t *testing.T) { // ME-01, ME-03
	server := apiserver.Start(t, apiserver.Options{})
	p := startProcess(t, server)
	c := newClient(t, server)
	reader, stranger := tokens(t, c)
	eventually(t, "diagnostics are served to who may read them", func() error {
		status, text, err := p.ask("https", http.MethodGet, "/metrics", reader)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("%d %s, %w", status, text, err)
		}
		return nil
	})
	for _, call := range []struct{ method, path string }{
		{http.MethodGet, "/metrics"}, {http.MethodGet, "/debug/pprof/"}, {http.MethodGet, "/debug/pprof/heap"},
		{http.MethodGet, "/debug/pprof/cmdline"}, {http.MethodGet, "/debug/flags/v"}, {http.MethodPut, "/debug/flags/v"},
	} {
		// Of a token that it cannot read the API server says that this is an error, and so does the endpoint.
		for who, want := range map[string]int{"": 401, "no.such.token": 500, stranger: 403, reader: 200} {
			if status, text, err := p.ask("https", call.method, call.path, who); err != nil || status != want {
				t.Errorf("%s %s with token %.12q: %d, want %d: %.80s, %v", call.method, call.path, who, status, want, text, err)
			}
		}
	}
	if _, text, err := p.ask("https", http.MethodGet, "/debug/flags/v", reader); err != nil || text != "3\n" {
		t.Errorf("the log level is %q, %v; 3 was asked for", text, err)
	}
	if status, _, err := p.ask("http", http.MethodGet, "/metrics", reader); err == nil && status == http.StatusOK {
		t.Error("metrics are served without TLS, too")
	}
	p.series(c, reader)
	p.plans(reader, stranger)
	p.stop()

	open := startProcess(t, server, "--insecure-diagnostics")
	eventually(t, "insecure diagnostics are served to anybody, in plain HTTP", func() error {
		status, _, err := open.ask("http", http.MethodGet, "/metrics", "")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
}

// plans checks that the plan of an object is served to who may get the object, and to no one else.
func (p *process) plans(reader, stranger string) {
	p.t.Helper()
	const fleet, nothing = "/debug/plans/cluster.x-k8s.io/Cluster/default/fleet", "/debug/plans/cluster.x-k8s.io/Cluster/default/nothing"
	for _, call := range []struct {
		path, token string
		want        int
	}{{fleet, reader, 200}, {fleet, stranger, 403}, {fleet, "", 401}, {nothing, reader, 404}, {nothing, stranger, 403}} {
		status, text, err := p.ask("https", http.MethodGet, call.path, call.token)
		if err != nil || status != call.want {
			p.t.Errorf("%s with token %.12q: %d, want %d: %.200s, %v", call.path, call.token, status, call.want, text, err)
		}
		if status == 200 && !strings.Contains(text, `"kind":"Cluster"`) {
			p.t.Errorf("not a plan: %s", text)
		}
	}
}

// series checks that the series of ME-01 are there once there was something to measure. Two have no value before a cache
// is late, and before an extension is called: tests of their own packages prove these.
func (p *process) series(c client.Client, token string) {
	p.t.Helper()
	createFleet(p.t, c, "default")
	want := []string{
		`capi_reconcile_total{controller="cluster",result="success"} [1-9]`,
		`capi_reconcile_time_seconds_count{controller="machine"} [1-9]`,
		`capi_ssa_cache_misses_total{controller="[a-z]+",kind="[A-Za-z]+"} [1-9]`,
		`informer_queued_items{group="cluster.x-k8s.io",name="slipway",resource="machines",version="v1beta2"} \d`,
		`informer_processing_latency_seconds_count{group="cluster.x-k8s.io",name="slipway",resource="machines",version="v1beta2"} [1-9]`,
		`informer_store_resource_version{group="cluster.x-k8s.io",name="slipway",resource="machines",version="v1beta2"} [1-9]`,
		`workqueue_adds_total{.*controller="machine".*} [1-9]`,
	}
	eventually(p.t, "all series are there", func() error {
		_, text, err := p.ask("https", http.MethodGet, "/metrics", token)
		if err != nil {
			return err
		}
		for _, line := range want {
			if !regexp.MustCompile(`(?m)^` + line).MatchString(text) {
				return fmt.Errorf("no line like %s", line)
			}
		}
		return nil
	})
}
