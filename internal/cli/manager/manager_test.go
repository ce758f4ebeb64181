package manager

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/slipwayhq/slipway/internal/cli/env"
	"github.com/slipwayhq/slipway/internal/fault"
)

func testEnv(variables map[string]string) env.Env {
	return env.Env{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Getenv: func(name string) string { return variables[name] }}
}

func TestFlagDefaults(t *testing.T) { // FL-01, FL-02, FL-03, FL-04, FL-05, FL-06, ME-03, PA-02, CT-09
	cmd := Command(testEnv(nil))
	for name, want := range map[string]string{
		"leader-elect": "false", "leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s", "leader-elect-retry-period": "2s",
		"cluster-concurrency": "50", "machine-concurrency": "100", "machinepool-concurrency": "50", "kubeadmconfig-concurrency": "100",
		"kube-api-qps": "100", "kube-api-burst": "200", "sync-period": "10m0s", "webhook-port": "9443", "tls-min-version": "VersionTLS12",
		"health-addr": ":9440", "diagnostics-address": ":8443", "insecure-diagnostics": "false", "v": "2", "bootstrap-token-ttl": "15m0s",
		"namespace": "", "watch-filter": "",
		"clustercache-client-qps": "20", "clustercache-client-burst": "30", "clustercache-concurrency": "100", // RC-06
		"skip-crd-migration-phases": "[]", "tracing": "false", // CM-03
		"runtime-extension-read-only": "false", // RT-20
	} {
		if f := cmd.Flags().Lookup(name); f == nil || f.DefValue != want {
			t.Errorf("--%s: %+v, want default %q", name, f, want)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"no such TLS version": {"--kubeconfig", "testdata/kubeconfig", "--tls-min-version", "SSLv3"},
		"no such phase":       {"--kubeconfig", "testdata/kubeconfig", "--skip-crd-migration-phases", "Everything"},
		"no such cipher":      {"--kubeconfig", "testdata/kubeconfig", "--tls-cipher-suites", "ROT13"},
		"no kubeconfig":       {"--kubeconfig", "testdata/absent"},
		"no cluster at all":   nil,
	} {
		cmd := Command(testEnv(nil))
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.Execute(); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: want an error that says what to do, got %v", name, err)
		}
	}
}

// Nothing is logged at the levels at which client-go logs the bodies of requests, which hold Secrets: neither from the start
// nor after the level was changed.
func TestLogsNoBodies(t *testing.T) {
	level := &slog.LevelVar{}
	log := logger(testEnv(nil), false, level)
	for set, want := range map[int]int{0: 0, 2: 2, 7: 7, 8: 7, 10: 7} {
		level.Set(slog.Level(-set))
		if !log.V(want).Enabled() || log.V(want+1).Enabled() {
			t.Errorf("-v %d: V(%d) is %t, V(%d) is %t", set, want, log.V(want).Enabled(), want+1, log.V(want+1).Enabled())
		}
	}
}
