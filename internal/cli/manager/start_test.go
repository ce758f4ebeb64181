package manager

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/manager"
	"github.com/slipwayhq/slipway/internal/plane/datadir"
	"github.com/slipwayhq/slipway/internal/testkit/apiserver"
)

// A manager that could not be started leaves its data directory to whoever comes next, and what another manager has said of it.
func TestFailedStart(t *testing.T) {
	server := apiserver.Start(t, apiserver.Options{})
	dir := datadir.Dir(filepath.Join(t.TempDir(), "mgr"))
	start := func() error {
		var out bytes.Buffer
		cmd := Command(env.Env{Out: &out, Err: &out, Now: time.Now, Getenv: func(string) string { return "" }, Executable: os.Executable})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--kubeconfig", server.Kubeconfig, "--data-dir", string(dir), "--webhook-port", "0", "--diagnostics-address", "0", "--health-addr", "0"})
		return cmd.ExecuteContext(t.Context())
	}
	if err := start(); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "--webhook-host") {
		t.Fatalf("without an address for the webhooks: %v", err)
	}
	if state, err := datadir.Inspect(dir); err != nil || state.Holder.ManagerOf != "" || state.Held {
		t.Errorf("the directory is that of a manager: %+v, %v", state.Holder, err)
	}
	other, err := datadir.Open(dir, datadir.Holder{PID: os.Getpid(), ManagerOf: "https://192.0.2.1", Command: "slipway manager --kubeconfig=other"})
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
