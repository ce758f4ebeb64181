package manager

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/slipwayhq/slipway/internal/cli/term"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/providerset"
)

func testEnv(variables map[string]string) term.Env {
	return term.Env{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Getenv: func(name string) string { return variables[name] }}
}

// referenceFlags are the flags of the reference implementation's core manager, v1.14, with their defaults, and
// --tls-curve-preferences of the version after it.
func referenceFlags() map[string]string {
	return map[string]string{
		// FL-01
		"leader-elect": "false", "leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s", "leader-elect-retry-period": "2s",
		// FL-02
		"clustertopology-concurrency": "50", "clusterclass-concurrency": "10", "cluster-concurrency": "50", "machine-concurrency": "100",
		"machineset-concurrency": "50", "machinedeployment-concurrency": "50", "machinepool-concurrency": "50",
		"clusterresourceset-concurrency": "10", "machinehealthcheck-concurrency": "50", "extensionconfig-concurrency": "10",
		// FL-03, FL-04, FL-05
		"kube-api-qps": "100", "kube-api-burst": "200", "sync-period": "10m0s",
		"webhook-port": "9443", "webhook-cert-dir": "", "webhook-cert-name": "tls.crt", "webhook-key-name": "tls.key", // docs/divergences.md: FL-04
		"tls-min-version": "VersionTLS12", "tls-cipher-suites": "[]", "tls-curve-preferences": "[]",
		// FL-06, ME-03
		"health-addr": ":9440", "profiler-address": "", "contention-profiling": "false", "diagnostics-address": ":8443", "insecure-diagnostics": "false",
		"v": "2", "logging-format": "text", "log-flush-frequency": "5s", "vmodule": "", "log-text-split-stream": "false",
		"log-text-info-buffer-size": "0", "log-json-split-stream": "false", "log-json-info-buffer-size": "0",
		// PA-02, CT-09
		"namespace": "", "watch-filter": "", "kubeconfig": "",
		// RC-06, CL-23, MA-20, MA-12, MS-17, CM-03, RT-20
		"clustercache-client-qps": "20", "clustercache-client-burst": "30", "clustercache-concurrency": "100",
		"remote-connection-grace-period": "50s", "remote-conditions-grace-period": "5m0s",
		"additional-sync-machine-labels": "[]", "additional-sync-machine-annotations": "[]",
		"machineset-preflight-checks": "[All]", "skip-crd-migration-phases": "[]",
		"runtime-extension-client-cert-file": "", "runtime-extension-client-key-file": "",
	}
}

func TestFlagDefaults(t *testing.T) { // FL-01 to FL-06, ME-03, PA-02, CT-09, KB-29
	want := referenceFlags()
	maps.Copy(want, map[string]string{ // those of the kubeadm bootstrap provider's manager, and our own
		"kubeadmconfig-concurrency": "100", "kubeadmcontrolplane-concurrency": "50", "etcd-dial-timeout-duration": "10s", "etcd-call-timeout-duration": "15s", "etcd-client-log-level": "warn",
		"bootstrap-token-ttl": "15m0s", "webhook-service": "slipway-webhook", "providers": "[]", "tracing": "false", "runtime-extension-read-only": "false",
		"clustercache-client-qps": "100", "clustercache-client-burst": "200", // docs/divergences.md
	})
	cmd := Command(testEnv(nil))
	for name, want := range want {
		if f := cmd.Flags().Lookup(name); f == nil || f.DefValue != want {
			t.Errorf("--%s: %+v, want default %q", name, f, want)
		}
	}
}

// The arguments of a Deployment of the reference implementation, v1.14, with every flag that it has: the manager starts with
// them, and what they set arrives.
func TestArgumentsOfTheReference(t *testing.T) { // FL-02, FL-05, FL-06, FG-01
	args := []string{
		"--leader-elect", "--diagnostics-address=:8443", "--insecure-diagnostics=false", "--logging-format=json", "--v=4", "--kube_api_qps=30",
		"--feature-gates=MachinePool=true,ClusterTopology=false,RuntimeSDK=false,MachineSetPreflightChecks=true," +
			"MachineWaitForVolumeDetachConsiderVolumeAttachments=true,PriorityQueue=true,ReconcilerRateLimiting=true,InPlaceUpdates=false," +
			"MachineTaintPropagation=false",
		"--tls-min-version=VersionTLS13", "--tls-curve-preferences=29,23", "--machine-concurrency=7",
	}
	given := strings.ReplaceAll(strings.Join(args, " "), "_", "-")
	for name, value := range referenceFlags() {
		if name == "kubeconfig" {
			value = "testdata/kubeconfig"
		}
		if value = strings.Trim(value, "[]"); value != "" && !strings.Contains(given, "--"+name) {
			args = append(args, "--"+name+"="+value)
		}
	}
	o := &options{concurrency: map[string]*int{}}
	var err error
	if o.gates, err = providerset.NewGates(); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
	o.bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	log := &bytes.Buffer{}
	cfg, err := o.complete(term.Env{Err: log, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"cluster": 50, "clusterclass": 10, "clustertopology": 50, "machine": 7, "machineset": 50, "machinedeployment": 50, "machinepool": 50, "clusterresourceset": 10, "clustercredentials": 10,
		"machinehealthcheck": 50, "extensionconfig": 10, "kubeadmconfig": 100, "kubeadmcontrolplane": 50,
		"hostedcontrolplane": 10, "etcdsnapshotpolicy": 5, "kubelet-serving": 5, "local-cluster": 10, "local-machine": 20, "local-machinepool": 10, "local-machinetemplate": 10,
		"ssh-cluster": 10, "ssh-host": 20, "ssh-machine": 20, "ssh-machinetemplate": 10,
	}
	if diff := cmp.Diff(want, cfg.Concurrency); diff != "" {
		t.Errorf("concurrency (-want +got):\n%s", diff)
	}
	if cfg.REST.QPS != 30 || cfg.REST.Burst != 200 || !cfg.LeaderElection.Enabled {
		t.Errorf("arguments got lost: %+v", cfg)
	}
	cfg.Log.V(4).Info("started")
	cfg.Log.V(5).Info("too much")
	if line := map[string]any{}; json.Unmarshal(log.Bytes(), &line) != nil || line["msg"] != "started" {
		t.Errorf("want one line of JSON, got %s", log)
	}
}

// FL-05: what the flags of TLS say holds for a connection.
func TestServingTLS(t *testing.T) {
	const chacha12 = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
	for name, tc := range map[string]struct {
		reason string
		server options
		client *tls.Config
		ok     bool
	}{
		"defaults":         {"TLS 1.2 is enough", options{}, &tls.Config{MaxVersion: tls.VersionTLS12}, true},
		"no TLS 1.1":       {"the default is 1.2", options{}, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
		"1.3 asked for":    {"an older client is refused", options{minTLS: "VersionTLS13"}, &tls.Config{MaxVersion: tls.VersionTLS12}, false},
		"1.3 spoken":       {"and a newer is not", options{minTLS: "VersionTLS13"}, &tls.Config{}, true},
		"suite in common":  {"as the flag says", options{ciphers: []string{chacha12}}, onlySuite(tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256), true},
		"no common suite":  {"others are not served", options{ciphers: []string{chacha12}}, onlySuite(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256), false},
		"curve in common":  {"P-256 is 23", options{curves: []int32{23}}, &tls.Config{CurvePreferences: []tls.CurveID{tls.CurveP256}}, true},
		"no common curves": {"X25519 is not P-256", options{curves: []int32{23}}, &tls.Config{CurvePreferences: []tls.CurveID{tls.X25519}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := tc.server.tls()
			if err != nil {
				t.Fatal(err)
			}
			certificate := selfSigned(t)
			server := &tls.Config{Certificates: []tls.Certificate{certificate}}
			for _, change := range changes {
				change(server)
			}
			client := tc.client.Clone()
			client.RootCAs, client.ServerName = x509.NewCertPool(), "localhost"
			client.RootCAs.AddCert(certificate.Leaf)
			left, right := net.Pipe()
			defer left.Close()
			go func() {
				_ = tls.Server(right, server).HandshakeContext(t.Context()) // the client's half says how it went
				right.Close()
			}()
			if err := tls.Client(left, client).HandshakeContext(t.Context()); (err == nil) != tc.ok {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func onlySuite(suite uint16) *tls.Config {
	return &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}}
}

// selfSigned is a certificate of localhost that is its own authority.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestBadFlags(t *testing.T) {
	for name, args := range map[string][]string{
		"no such TLS version": {"--kubeconfig", "testdata/kubeconfig", "--tls-min-version", "SSLv3"},
		"no such phase":       {"--kubeconfig", "testdata/kubeconfig", "--skip-crd-migration-phases", "Everything"},
		"no such curve":       {"--kubeconfig", "testdata/kubeconfig", "--tls-curve-preferences", "1"},
		"no such log format":  {"--kubeconfig", "testdata/kubeconfig", "--logging-format", "xml"},
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

// In a Pod the manager's own objects are in the Pod's namespace: whoever installs the components chooses it.
func TestManagerNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, variable string
		args             []string
		want             string
	}{
		"nothing":  {"the default of the program", "", nil, ""},
		"in a Pod": {"the Deployment's variable", "team", nil, "team"},
		"flag":     {"what is said comes first", "team", []string{"--manager-namespace=other"}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &options{concurrency: map[string]*int{}}
			var err error
			if o.gates, err = providerset.NewGates(); err != nil {
				t.Fatal(err)
			}
			flags := pflag.NewFlagSet("manager", pflag.ContinueOnError)
			o.bind(flags)
			if err := flags.Parse(append(tc.args, "--kubeconfig=testdata/kubeconfig")); err != nil {
				t.Fatal(err)
			}
			cfg, err := o.complete(testEnv(map[string]string{"POD_NAMESPACE": tc.variable}))
			if err != nil || cfg.Home != tc.want {
				t.Errorf("%s: namespace %q, want %q (%v)", tc.reason, cfg.Home, tc.want, err)
			}
		})
	}
}

// KUBECONFIG may name several files, as for kubectl; what is wrong with one is said.
func TestAccess(t *testing.T) {
	o := &options{}
	if _, err := o.access(testEnv(map[string]string{"KUBECONFIG": "testdata/absent:testdata/kubeconfig"})); err != nil {
		t.Error("two files:", err)
	}
	o.kubeconfig = "testdata/absent"
	if _, err := o.access(testEnv(nil)); err == nil || !strings.Contains(err.Error(), "testdata/absent cannot be used: ") || !strings.Contains(err.Error(), "no such file") {
		t.Error("a file that is not there:", err)
	}
}
