package manager

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

// A manager that could not be started leaves its data directory to whoever comes next, and what another manager has said of it.
func TestFailedStart(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	dir := datadir.Dir(filepath.Join(t.TempDir(), "mgr"))
	start := func() error {
		var out bytes.Buffer
		cmd := Command(term.Env{Out: &out, Err: &out, Now: time.Now, Getenv: func(string) string { return "" }, Executable: os.Executable})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--kubeconfig", server.Kubeconfig, "--data-dir", string(dir), "--webhook-port", "0", "--diagnostics-address", "0", "--health-addr", "0"})
		return cmd.ExecuteContext(t.Context())
	}
	if err := start(); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "--webhook-host") {
		t.Fatalf("without an address for the webhooks: %v", err)
	}
	if _, err := os.Stat(string(dir)); !os.IsNotExist(err) {
		t.Errorf("a directory was left: %v", err)
	}
	other, err := datadir.Open(dir, datadir.Holder{PID: os.Getpid(), ManagerOf: server.Config.Host, Command: "slipway manager --kubeconfig=other"})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if err := start(); err == nil {
		t.Fatal("it has started")
	}
	if state, err := datadir.Inspect(dir); err != nil || state.Holder.Command != "slipway manager --kubeconfig=other" {
		t.Errorf("what the last manager said is gone: %+v, %v", state.Holder, err)
	}
}

// What is on this host for one management cluster is not taken over for another.
func TestDirectoryOfAnother(t *testing.T) {
	e, o := term.Env{Getenv: func(string) string { return "" }}, &options{dataDir: filepath.Join(t.TempDir(), "data")}
	dir := datadir.Dir(o.dataDir)
	if err := o.checkDirectory(e, "https://one"); err != nil {
		t.Errorf("a new one: %v", err)
	}
	h, err := datadir.Open(dir, datadir.Holder{PID: os.Getpid(), ManagerOf: "https://one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.checkDirectory(e, "https://one"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("one that is held: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := o.checkDirectory(e, "https://one"); err != nil {
		t.Errorf("its own: %v", err)
	}
	if err := o.checkDirectory(e, "https://two"); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "belongs to a manager of https://one") {
		t.Errorf("of another cluster: %v", err)
	}
	if err := os.MkdirAll(dir.Etcd(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := o.checkDirectory(e, "https://one"); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), `of "slipway up"`) {
		t.Errorf("of slipway up: %v", err)
	}
}

// A lease that no one holds, or that was not renewed in time, is free.
func TestLeases(t *testing.T) {
	now := time.Unix(1e9, 0)
	spec := func(holder string, ago time.Duration) coordinationv1.LeaseSpec {
		seconds, renewed := int32(15), metav1.NewMicroTime(now.Add(-ago))
		return coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
	}
	for name, tc := range map[string]struct {
		of   coordinationv1.LeaseSpec
		held bool
	}{
		"held": {spec("a", time.Second), true}, "released": {spec("", time.Second), false}, "lapsed": {spec("a", time.Minute), false}, "new": {coordinationv1.LeaseSpec{}, false},
	} {
		if got := isHeld(tc.of, now); got != tc.held {
			t.Errorf("%s: %t", name, got)
		}
	}
	server := apiserver.Start(t, apiserver.Options{})
	if !leaseIsFree(t.Context(), manager.Config{REST: server.Config}) {
		t.Error("there is no lease, and it is not free")
	}
	elects := manager.Config{REST: server.Config, LeaderElection: manager.LeaderElection{Enabled: true, Retry: 10 * time.Millisecond}}
	for range 20 {
		if !leaseStaysFree(t.Context(), elects) {
			t.Fatal("no one takes it, and it does not stay free")
		}
	}
	api, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	held := metav1.NewMicroTime(time.Now())
	for _, create := range []func() error{
		func() error {
			_, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elects.Lease().Namespace}}, metav1.CreateOptions{})
			return err
		},
		func() error {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: elects.Lease().Namespace, Name: elects.Lease().Name}}
			lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("standby"), LeaseDurationSeconds: new(int32(600)), RenewTime: &held}
			_, err := api.CoordinationV1().Leases(lease.Namespace).Create(t.Context(), lease, metav1.CreateOptions{})
			return err
		},
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	if leaseStaysFree(t.Context(), elects) {
		t.Error("one that stood by has taken it, and it stays free")
	}
	behind, behindAgain := spec("leader", time.Hour), spec("leader", 50*time.Minute)
	if !isRenewed(behind, behindAgain) || isRenewed(behind, behind) || isRenewed(behind, spec("", 0)) {
		t.Error("a leader whose clock is behind is known by what it writes")
	}
	away := rest.CopyConfig(server.Config)
	away.Host = "https://127.0.0.1:1"
	if leaseIsFree(t.Context(), manager.Config{REST: away}) {
		t.Error("what cannot be read is free")
	}
}

// Client certificates are known where the manager may read which are, and nothing is read where it may not.
func TestClientAuthority(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	if got := clientAuthority(t.Context(), manager.Config{REST: server.Config}); !bytes.Contains(got, []byte("BEGIN CERTIFICATE")) {
		t.Errorf("an administrator's manager: %q", got)
	}
	// May say what it may do, as everyone may in a cluster with the usual roles, and nothing else.
	limited := rest.CopyConfig(server.Config)
	limited.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:default:manager", Groups: []string{"system:authenticated"}}
	if got := clientAuthority(t.Context(), manager.Config{REST: limited}); got != nil {
		t.Errorf("a manager without that right: %q", got)
	}
	if got := clientAuthority(t.Context(), manager.Config{REST: server.Config, Endpoints: manager.Endpoints{Diagnostics: "0"}}); got != nil {
		t.Errorf("without diagnostics: %q", got)
	}
}

// The context that is current when a manager starts stays its own.
func TestContextStays(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	e := term.Env{Now: time.Now, Getenv: func(string) string { return "" }}
	o := &options{kubeconfig: server.Kubeconfig}
	access, err := o.access(e)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: server.Kubeconfig}, &clientcmd.ConfigOverrides{}).RawConfig()
	if err != nil {
		t.Fatal(err)
	}
	cfg := manager.Config{REST: access}
	if got := o.holder(e, cfg).Context; got == "" || got != loaded.CurrentContext {
		t.Errorf("the context is %q, and %q was current", got, loaded.CurrentContext)
	}
	o.context = "named"
	if got := o.holder(e, cfg).Context; got != "named" {
		t.Errorf("the context is %q", got)
	}
}
