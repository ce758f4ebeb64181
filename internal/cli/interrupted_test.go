package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/cli"
	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/clusterctl/provider"
	"github.com/slipwayhq/slipway/test/providerrelease"
)

// barrier stands before an API server and lets a number of writes pass that change something; then it calls reached, and answers
// nothing any more.
type barrier struct {
	mu      sync.Mutex
	left    int // writes; negative: all
	closed  bool
	writes  int
	reached func()
	proxy   *httputil.ReverseProxy
	target  *url.URL
	direct  http.RoundTripper
}

// newBarrier returns the barrier and the path of a kubeconfig that leads to it.
func newBarrier(t *testing.T, config *rest.Config) (*barrier, string) {
	t.Helper()
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	direct, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	b := &barrier{left: -1, proxy: httputil.NewSingleHostReverseProxy(target), target: target, direct: direct}
	b.proxy.Transport = direct
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "x", Contexts: map[string]*clientcmdapi.Context{"x": {Cluster: "x"}}, Clusters: map[string]*clientcmdapi.Cluster{"x": {Server: server.URL}},
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return b, path
}

// open lets so many writes pass.
func (b *barrier) open(writes int, reached func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left, b.closed, b.writes, b.reached = writes, false, 0, reached
}

func (b *barrier) count() (writes int, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes, b.closed
}

// ServeHTTP implements http.Handler. One write goes after the other.
func (b *barrier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isWrite := r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && !strings.Contains(r.URL.Path, "/authorization.k8s.io/")
	if !isWrite {
		if _, closed := b.count(); closed {
			panic(http.ErrAbortHandler)
		}
		b.proxy.ServeHTTP(w, r)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		panic(http.ErrAbortHandler)
	}
	before := b.version(r)
	answer := httptest.NewRecorder()
	b.proxy.ServeHTTP(answer, r)
	if answer.Code < 300 && (r.Method == http.MethodPost || b.version(r) != before) {
		b.writes++
		if b.left > 0 && b.writes == b.left {
			b.closed = true
			b.reached()
			panic(http.ErrAbortHandler) // it was written, and the client is not told
		}
	}
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}

// version is the resource version of the object of a request; empty: it is not there.
func (b *barrier) version(r *http.Request) string {
	u := *b.target
	u.Path = strings.TrimSuffix(r.URL.Path, "/status")
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return err.Error()
	}
	answer, err := b.direct.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.NewDecoder(answer.Body).Decode(&o); err != nil && err != io.EOF {
		return err.Error()
	}
	return o.Metadata.ResourceVersion
}

// fixed runs a verb at the same time of day again and again, so that records are equal.
func (o operator) fixed(ctx context.Context, args string) result {
	var out, stderr strings.Builder
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	e := term.Env{In: strings.NewReader(""), Out: &out, Err: &stderr, Getenv: func(string) string { return "" }, Now: func() time.Time { return at }}
	code := cli.Run(ctx, append(strings.Fields(args), "--config", o.config, "--kubeconfig", o.kubeconfig), e)
	return result{code, out.String(), stderr.String()}
}

// CX-12: cut off after each write of an upgrade, and of the way back to the version before, the same command again completes it.
func TestUpgradeCutOffAtEveryWrite(t *testing.T) {
	more := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: only-VERSION, namespace: NAME-system}\n"
	o := startOperator(t,
		providerrelease.Release{Label: "cluster-api", Version: "v1.14.1"},
		providerrelease.Release{Label: "infrastructure-acme", Version: "v2.0.0", More: strings.ReplaceAll(more, "VERSION", "before")},
		providerrelease.Release{Label: "infrastructure-acme", Version: "v2.1.0", More: strings.ReplaceAll(more, "VERSION", "after")})
	o.fixed(t.Context(), "init --infrastructure acme:v2.0.0 --bootstrap - --control-plane - --cert-manager builtin").wants(t, cli.ExitOK)
	b, through := newBarrier(t, o.server.Config)
	o.kubeconfig = through
	versions := []string{"v2.0.0", "v2.1.0"}
	for n := 1; ; n++ {
		to := versions[n%2]
		command := "upgrade apply --infrastructure acme:" + to
		ctx, cancel := context.WithCancel(t.Context())
		b.open(n, cancel)
		first := o.fixed(ctx, command)
		cancel()
		writes, cut := b.count()
		b.open(-1, nil)
		if cut {
			if first.code == cli.ExitOK {
				t.Fatalf("write %d was the last thing that the command saw, and it reports success", n)
			}
			o.fixed(t.Context(), command).wants(t, cli.ExitOK)
		} else {
			first.wants(t, cli.ExitOK, "Upgraded provider infrastructure-acme")
		}
		o.isUpgraded(t, to, n)
		if !cut {
			t.Logf("cut off after each of %d writes", writes)
			if writes < 6 {
				t.Errorf("only %d writes", writes)
			}
			return
		}
	}
}

// isUpgraded: everything is as the version has it.
func (o operator) isUpgraded(t *testing.T, version string, n int) {
	t.Helper()
	d := o.deployment(t)
	if image := d.Spec.Template.Spec.Containers[0].Image; image != "registry.example/acme:"+version || *d.Spec.Replicas != 1 {
		t.Fatalf("write %d: image %s, %d replicas", n, image, *d.Spec.Replicas)
	}
	installed, err := provider.ReadInventory(t.Context(), o.client)
	if err != nil || len(installed) != 2 || installed[1].Version != version || installed[1].TargetVersion != "" || installed[1].Applied {
		t.Fatalf("write %d: %+v, %v", n, installed, err)
	}
	for name, there := range map[string]bool{"only-before": version == "v2.0.0", "only-after": version == "v2.1.0"} {
		err := o.client.Get(t.Context(), client.ObjectKey{Namespace: "acme-system", Name: name}, &corev1.ConfigMap{})
		if client.IgnoreNotFound(err) != nil || (err == nil) != there {
			t.Fatalf("write %d: ConfigMap %s: %v", n, name, err)
		}
	}
}

// CX-01, CX-12: a wait that was cut off is repeated by the same command, of init as of an upgrade, which then knows the way back.
func TestWaitCutOff(t *testing.T) {
	o := startOperator(t,
		providerrelease.Release{Label: "cluster-api", Version: "v1.14.1"},
		providerrelease.Release{Label: "infrastructure-acme", Version: "v2.0.0"},
		providerrelease.Release{Label: "infrastructure-acme", Version: "v2.1.0"})
	if err := o.client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}); err != nil {
		t.Fatal(err)
	}
	init := "init --infrastructure acme:v2.0.0 --bootstrap - --control-plane - --cert-manager builtin"
	waiting := init + " --wait-providers --wait-provider-timeout 1"
	o.cutOffWaiting(t, waiting, func(p provider.Installed) bool { return p.Installing && o.exists("acme-manager") })
	o.wants(t, waiting, cli.ExitInvalid, "await Deployment", "is not available (0 of 1 replicas)")
	o.wants(t, "upgrade apply --contract v1beta2", cli.ExitInvalid, "run `slipway init` again")
	o.wants(t, init, cli.ExitOK, "Installed provider infrastructure-acme v2.0.0")

	upgrade := "upgrade apply --contract v1beta2 --wait-providers --wait-provider-timeout 1"
	o.cutOffWaiting(t, upgrade, func(p provider.Installed) bool { return p.Applied })
	if image := o.deployment(t).Spec.Template.Spec.Containers[0].Image; image != "registry.example/acme:v2.1.0" {
		t.Errorf("while it waited, the image was %s", image)
	}
	o.wants(t, "delete --infrastructure nowhere", cli.ExitNotFound, "infrastructure-acme v2.1.0")
	o.wants(t, upgrade, cli.ExitInvalid, "Installing the former versions again", "their former versions are installed again")
	if image := o.deployment(t).Spec.Template.Spec.Containers[0].Image; image != "registry.example/acme:v2.0.0" {
		t.Errorf("after the way back, the image is %s", image)
	}
	o.wants(t, "upgrade apply --contract v1beta2", cli.ExitOK, "Upgraded provider infrastructure-acme in namespace acme-system from v2.0.0 to v2.1.0.")
	o.wants(t, "upgrade plan", cli.ExitOK, "All providers are up to date")
}

func (o operator) exists(deployment string) bool {
	m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}}
	return o.client.Get(context.Background(), client.ObjectKey{Namespace: "acme-system", Name: deployment}, m) == nil
}

// cutOffWaiting ends a command as soon as the record of acme is as it is while the command waits.
func (o operator) cutOffWaiting(t *testing.T, args string, waits func(provider.Installed) bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args = strings.ReplaceAll(args, "--wait-provider-timeout 1", "--wait-provider-timeout 300")
	done := make(chan result, 1)
	go func() { done <- o.run(ctx, append(strings.Fields(args), "--config", o.config)...) }()
	eventually(t, func() error {
		installed, err := provider.ReadInventory(t.Context(), o.client)
		if err != nil {
			return err
		}
		for _, p := range provider.FindInstalled(installed, provider.Infrastructure, "acme") {
			if waits(p) {
				return nil
			}
		}
		return fmt.Errorf("it does not wait yet: %+v", installed)
	})
	cancel()
	if r := <-done; r.code == cli.ExitOK {
		t.Fatalf("it was cut off and reports success: %s%s", r.out, r.err)
	}
}

// helperArguments has the arguments of a command for a test binary that is run as slipway.
const helperArguments = "SLIPWAY_TEST_ARGUMENTS"

// TestHelperCommand is not a test: it is slipway in a process of its own, for tests that kill it.
func TestHelperCommand(t *testing.T) {
	args := os.Getenv(helperArguments)
	if args == "" {
		return
	}
	os.Exit(cli.Run(t.Context(), strings.Fields(args), term.System()))
}

// CX-01: killed with SIGKILL in the middle of init, the same command again completes it.
func TestInitKilled(t *testing.T) {
	o := startOperator(t, providerrelease.Release{Label: "cluster-api", Version: "v1.14.1"}, providerrelease.Release{Label: "infrastructure-acme", Version: "v2.0.0"})
	b, through := newBarrier(t, o.server.Config)
	direct := o.kubeconfig
	init := "init --infrastructure acme --bootstrap - --control-plane - --cert-manager builtin --config " + o.config
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestHelperCommand$")
	cmd.Env = append(os.Environ(), helperArguments+"="+init+" --kubeconfig "+through)
	started, out := make(chan struct{}), &bytes.Buffer{}
	b.open(9, func() {
		<-started
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Start()
	close(started)
	if err == nil {
		err = cmd.Wait()
	}
	if err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("it was not killed: %v\n%s", err, out)
	}
	installed, err := provider.ReadInventory(t.Context(), o.client)
	if err != nil || len(installed) == 0 || !installed[0].Installing {
		t.Fatalf("after the kill: %+v, %v", installed, err)
	}
	o.kubeconfig = direct
	o.wants(t, strings.ReplaceAll(init, " --config "+o.config, ""), cli.ExitOK, "Installed provider cluster-api v1.14.1", "Installed provider infrastructure-acme v2.0.0")
	o.deployment(t)
}
