package manager

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

// What status and down show starts the manager again as it was.
func TestCommandToRepeat(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"KUBECONFIG": "/a b/kubeconfig:k"}
	e := term.Env{Getenv: func(name string) string { return variables[name] }}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":    {nil, "KUBECONFIG='/a b/kubeconfig:" + here + "/k' slipway manager"},
		"flags":      {[]string{"--kubeconfig", "it's", "--feature-gates", "ClusterTopology=true,RuntimeSDK=false", "--providers", "cluster-api,infrastructure-local", "--leader-elect"}, "slipway manager --feature-gates=ClusterTopology=true,RuntimeSDK=false '--kubeconfig=" + here + "/it'\\''s' --leader-elect=true --providers=cluster-api,infrastructure-local"},
		"normalized": {[]string{"--kubeconfig=k", "--webhook_port=9000"}, "slipway manager --kubeconfig=" + here + "/k --webhook-port=9000"},
		"paths": {[]string{"--kubeconfig=/k", "--bundles=b", "--webhook-cert-dir=certs", "--diagnostics-key-file=k.pem", "--webhook-cert-name=tls.crt"},
			"slipway manager --bundles=" + here + "/b --diagnostics-key-file=" + here + "/k.pem --kubeconfig=/k --webhook-cert-dir=" + here + "/certs --webhook-cert-name=tls.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			gates, err := providerset.NewGates()
			if err != nil {
				t.Fatal(err)
			}
			o, flags := &options{concurrency: map[string]*int{}, gates: gates}, pflag.NewFlagSet("manager", pflag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			flags.Visit(func(f *pflag.Flag) { o.set = append(o.set, f) })
			if got := o.command(e); got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

// A person is sent to 127.0.0.1 only where the manager serves there itself.
func TestDiagnosticsPort(t *testing.T) {
	for address, want := range map[string]string{":8443": "8443", "127.0.0.1:1": "1", "[::]:2": "2", "192.0.2.1:8443": "", "0": "", "127.0.0.1:0": ""} {
		o := &options{}
		o.config.Endpoints.Diagnostics = address
		if got := o.diagnosticsPort(); got != want {
			t.Errorf("%s: %q", address, got)
		}
		o.config.Endpoints.Insecure = true
		if got := o.diagnosticsPort(); got != "" {
			t.Errorf("%s, in plain HTTP: %q", address, got)
		}
	}
}

// Who starts it again without its flags hears what they were; who lacks rights hears where they are.
func TestHints(t *testing.T) {
	h, err := datadir.Open(datadir.Dir(t.TempDir()), datadir.Holder{PID: 1, ManagerOf: "https://192.0.2.1", Command: "slipway manager --kubeconfig=k"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	e := term.Env{Getenv: func(string) string { return "" }}
	missing := fault.New(fault.Invalid, reasonNoCluster, "no management cluster")
	if got := (&options{dataDir: string(h.Dir)}).addLastCommand(e, missing); !strings.HasSuffix(got.Error(), "was started with: slipway manager --kubeconfig=k") {
		t.Errorf("%v", got)
	}
	other := errors.New("other")
	for _, o := range []*options{{}, {dataDir: t.TempDir()}} {
		if got := o.addLastCommand(e, missing); got != error(missing) {
			t.Errorf("%v", got)
		}
	}
	if got := (&options{dataDir: string(h.Dir)}).addLastCommand(e, other); got != other {
		t.Errorf("%v", got)
	}
	forbidden := fmt.Errorf("installing: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", other))
	if got := addRightsHint(forbidden); fault.KindOf(got) != fault.Invalid || !strings.Contains(got.Error(), "--print-roles") {
		t.Errorf("%v", got)
	}
	if got := addRightsHint(other); got != other {
		t.Errorf("%v", got)
	}
}
