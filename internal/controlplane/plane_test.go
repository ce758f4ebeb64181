package controlplane

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"flag"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/embed"
	cliflag "k8s.io/component-base/cli/flag"
	serverOptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	managerApp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	managerOptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	schedulerOptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/buildinfo"
	"github.com/slipwayhq/slipway/internal/controlplane/componentconfig"
	"github.com/slipwayhq/slipway/internal/controlplane/datadir"
	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/controlplane/processconfig"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/local/loadbalancer"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func config() processconfig.Config {
	return processconfig.Config{
		Cluster: "demo", Version: "v1.36.3", Endpoint: "172.31.0.1:6443",
		ServiceCIDRs: []string{"172.31.112.0/20"}, PodCIDRs: []string{"172.31.128.0/17"},
	}
}

func TestNodeMask(t *testing.T) {
	tests := map[string]struct {
		reason string
		pods   string
		want   int
	}{
		"usual":             {"256 addresses for each of 128 nodes", "172.31.128.0/17", 24},
		"large":             {"256 addresses for each of 256 nodes", "10.0.0.0/16", 24},
		"huge":              {"the allocator takes at most 2^16 parts", "0.0.0.0/4", 20},
		"small":             {"at least 16 nodes", "172.31.128.0/22", 26},
		"a single address":  {"there is nothing to divide", "172.31.128.1/32", 32},
		"IPv6":              {"the customary 64 bits", "fd00::/56", 64},
		"IPv6 beyond 2^16":  {"the allocator takes at most 2^16 parts", "fd00::/40", 56},
		"small IPv6 range":  {"at least 16 nodes", "fd00::/108", 112},
		"smaller IPv4 net":  {"at least 16 nodes", "10.1.2.0/24", 28},
		"smallest sensible": {"at least 16 nodes, one address each", "10.1.2.0/28", 32},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nodeMask(netip.MustParsePrefix(test.pods)); got != test.want {
				t.Errorf("%s is divided into /%d, want /%d: %s", test.pods, got, test.want, test.reason)
			}
		})
	}
}

func TestNodeMasksOfTwoFamilies(t *testing.T) {
	got := nodeMasks([]string{"10.0.0.0/16", "fd00::/56"})
	if diff := cmp.Diff([]string{"--node-cidr-mask-size-ipv4=24", "--node-cidr-mask-size-ipv6=64"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestFlagsGivenTakeThePlaceOfOurs(t *testing.T) {
	own := []string{"--profiling=false", "--enable-admission-plugins=NodeRestriction", "--v=0"}
	tests := map[string]struct {
		reason string
		extra  []string
		want   []string
	}{
		"none":              {"ours as they are", nil, own},
		"another":           {"added", []string{"--event-ttl=3h"}, append(slices.Clone(own), "--event-ttl=3h")},
		"one of ours":       {"the user's value counts", []string{"--v=4"}, []string{own[0], own[1], "--v=4"}},
		"admission plugins": {"nodes stay restricted", []string{"--enable-admission-plugins=AlwaysPullImages"}, append(slices.Clone(own), "--enable-admission-plugins=AlwaysPullImages")},
		"repeated":          {"every value is kept", []string{"--v=1", "--v=2"}, []string{own[0], own[1], "--v=1", "--v=2"}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, override(own, test.extra)); diff != "" {
			t.Errorf("%s: %s: %s", name, test.reason, diff)
		}
	}
}

// Every flag that is given to a component exists, and no feature is left to static tokens or plain ports.
func TestFlagsSayWhatMatters(t *testing.T) {
	folder := pki.Folder{Path: "/pki"}
	c := config()
	strict := config()
	strict.Security = hostedv1.Security{Hardening: hostedv1.HardeningRestricted}.Effective()
	sets := map[string][]string{
		"management server":       managementFlags(folder, "unix:///s", "/auth", false),
		"management controllers":  managementControllerFlags(folder, "/kubeconfig"),
		"workload server":         workloadAPIServerFlags(c, folder, "unix:///s", []string{"--authentication-config=/auth"}),
		"workload server, strict": workloadAPIServerFlags(strict, folder, "unix:///s", nil),
		"workload controllers":    workloadControllerFlags(c, folder, "/kubeconfig"),
		"workload scheduler":      workloadSchedulerFlags(c, "/kubeconfig"),
	}
	want := map[string][]string{
		"management server":       {"--authorization-mode=RBAC", "--etcd-servers=unix:///s", "--authentication-config=/auth", "--profiling=false"},
		"management controllers":  {"--use-service-account-credentials=true"},
		"workload server":         {"--authorization-mode=Node,RBAC", "--enable-bootstrap-token-auth=true", "--enable-aggregator-routing=true", "--advertise-address=172.31.0.1", "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs"},
		"workload server, strict": {"--kubelet-certificate-authority=/pki/ca.crt", "--authorization-mode=Node,RBAC", "--tls-min-version=VersionTLS13", "--enable-admission-plugins=NodeRestriction,DenyServiceExternalIPs,EventRateLimit"},
		"workload controllers":    {"--kube-api-qps=100", "--kube-api-burst=200", "--allocate-node-cidrs=true", "--cluster-cidr=172.31.128.0/17", "--node-cidr-mask-size=24"},
		"workload scheduler":      {"--kubeconfig=/kubeconfig"},
	}
	for name, flags := range sets {
		for _, f := range want[name] {
			if !slices.Contains(flags, f) {
				t.Errorf("%s: %s is missing", name, f)
			}
		}
		for _, f := range flags {
			if strings.HasPrefix(f, "--token-auth-file") || strings.HasPrefix(f, "--insecure") {
				t.Errorf("%s: %s", name, f)
			}
			if strings.HasPrefix(f, "--kubelet-certificate-authority") && name != "workload server, strict" {
				t.Errorf("%s: %s: kubelets that sign their own certificates are not reached", name, f)
			}
		}
	}
	// Quotas would watch kinds of this group, and say without end that they are not there.
	served := slices.Contains(servedGroups[:], "resource.k8s.io/v1")
	gates := slices.ContainsFunc(sets["management server"], func(f string) bool {
		return strings.HasPrefix(f, "--feature-gates=") && strings.Contains(f, "DRAExtendedResource=false")
	})
	if served == gates {
		t.Errorf("the management cluster serves resource.k8s.io: %t, and does not watch it: %t", served, gates)
	}
	signed := config()
	signed.Security.KubeletServingCertificates = hostedv1.KubeletServingSigned
	if diff := cmp.Diff(sets["workload server"], workloadAPIServerFlags(signed, folder, "unix:///s", []string{"--authentication-config=/auth"})); diff != "" {
		t.Errorf("nodes from before are reached as long as certificates are not required: %s", diff)
	}
}

func managementCerts(t *testing.T, now *time.Time) managementPKI {
	t.Helper()
	m := newManagementPKI(ManagementConfig{Dir: datadir.Dir(t.TempDir()), Now: func() time.Time { return *now }}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6440})
	if err := m.ensure(); err != nil {
		t.Fatal(err)
	}
	return m
}

// The manager serves diagnostics with a certificate that its clients trust already, and that is good for nothing else.
func TestDiagnosticsCertificate(t *testing.T) {
	now := start
	m := managementCerts(t, &now)
	ca, err := m.folder.Authority("ca", pki.Authority{})
	if err != nil {
		t.Fatal(err)
	}
	file, _ := m.dir.DiagnosticsFiles()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	for usage, good := range map[x509.ExtKeyUsage]bool{x509.ExtKeyUsageServerAuth: true, x509.ExtKeyUsageClientAuth: false} {
		options := x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1", CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}
		if _, err := cert.Verify(options); (err == nil) != good {
			t.Errorf("usage %d: %v", usage, err)
		}
	}
}

// The certificates of a management cluster are renewed while it runs, before they expire, and its kubeconfigs with them.
func TestManagementCertificatesAreRenewed(t *testing.T) {
	now := start
	m := managementCerts(t, &now)
	read := func() map[string]string {
		out := map[string]string{}
		for _, path := range []string{m.folder.Cert("apiserver"), m.folder.Cert("manager"), m.folder.Cert(datadir.Diagnostics), m.folder.Cert(datadir.Extensions), m.folder.Cert("controllers"), m.dir.Kubeconfig(), m.folder.Cert("ca")} {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Base(path)] = string(data)
		}
		return out
	}
	first := read()
	now = start.Add(30 * 24 * time.Hour)
	if err := m.ensure(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("written again after a month: %s", diff)
	}
	now = start.Add(pki.LeafLifetime * 3 / 4)
	if err := m.ensure(); err != nil {
		t.Fatal(err)
	}
	for name, content := range read() {
		if (content == first[name]) != (name == "ca.crt") {
			t.Errorf("after nine months %s is changed: %v", name, content != first[name])
		}
	}
}

func TestManagementKubeconfigsArePrivate(t *testing.T) {
	now := start
	m := managementCerts(t, &now)
	for _, path := range []string{m.dir.Kubeconfig(), m.dir.ManagerKubeconfig(), m.controllersKubeconfig()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", path, info.Mode().Perm())
		}
	}
}

// A workload cluster's serving certificate names every way to reach the server.
func TestWorkloadServingCertificate(t *testing.T) {
	c := config()
	c.Names = []string{"demo.example.com", "192.0.2.7"}
	folder := pki.Folder{Path: t.TempDir(), Now: func() time.Time { return start }}
	for _, name := range []string{processconfig.CA, processconfig.ProxyCA} {
		if _, err := folder.Authority(name, pki.Authority{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	c.CertificateDays = 30
	w := workloadPKI{config: c, folder: folder, local: "127.9.8.7:6443"}
	if err := w.ensure(); err != nil {
		t.Fatal(err)
	}
	serving, err := w.load("apiserver")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"172.31.0.1", "172.31.112.1", "127.9.8.7", "127.0.0.1", "localhost", "kubernetes.default.svc.cluster.local", "demo.example.com", "192.0.2.7"} {
		if err := serving.Cert.VerifyHostname(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if want := start.Add(30 * 24 * time.Hour); !serving.Cert.NotAfter.Equal(want) {
		t.Errorf("it ends %s, want %s", serving.Cert.NotAfter, want)
	}
}

func TestWorkloadNeedsItsAuthorities(t *testing.T) {
	w := workloadPKI{config: config(), folder: pki.Folder{Path: t.TempDir(), Now: func() time.Time { return start }}}
	if err := w.ensure(); err == nil || !strings.Contains(err.Error(), "authority ca") {
		t.Errorf("without authorities: %v", err)
	}
}

func TestAnonymousRequests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.json")
	if err := writeAuthentication(path, nil, "/readyz", clusterInfoPath); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Anonymous struct {
			Enabled    bool
			Conditions []struct{ Path string }
		}
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if !got.Anonymous.Enabled || len(got.Anonymous.Conditions) != 2 || got.Anonymous.Conditions[1].Path != clusterInfoPath {
		t.Errorf("got %+v", got)
	}
}

func TestListenLoopback(t *testing.T) {
	l, err := listenLoopback(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	tests := map[string]struct {
		address, reason, says string
	}{
		"taken":        {l.Addr().String(), reasonPortTaken, "--listen 127.0.0.1:PORT"},
		"all":          {"0.0.0.0:6440", "ListenAddress", "loopback"},
		"a name":       {"localhost:6440", "ListenAddress", "loopback"},
		"without port": {"127.0.0.1", "ListenAddress", "ADDRESS:PORT"},
	}
	for name, test := range tests {
		_, err := listenLoopback(t.Context(), test.address)
		f := fault.As(err)
		if f == nil || f.Kind != fault.Invalid || f.Reason != test.reason || !strings.Contains(f.Message, test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A control plane may start before its network's bridge exists.
func TestListenFreeNeedsNoInterface(t *testing.T) {
	l, err := loadbalancer.ListenFreebind(t.Context(), "192.0.2.1:0") // an address for documentation, on no machine
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// kube-apiserver announces the port of its listener to Pods, so the listener beside the endpoint has the same; control
// planes with one port do not get in each other's way.
func TestListenBesideHasThePortOfTheEndpoint(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).AddrPort().Port()
	used := map[string]bool{}
	for _, endpoint := range []string{"172.31.0.1", "172.30.0.1", "172.31.0.1", "fd00::1"} {
		l, err := listenOnLoopback(t.Context(), netip.AddrPortFrom(netip.MustParseAddr(endpoint), port))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		got := l.Addr().(*net.TCPAddr).AddrPort()
		if got.Port() != port || !got.Addr().Unmap().IsLoopback() || used[got.String()] {
			t.Errorf("beside %s: %s, want port %d on a loopback address of its own", endpoint, got, port)
		}
		used[got.String()] = true
	}
}

func TestAllowedFlagsExist(t *testing.T) {
	manager, err := managerOptions.NewKubeControllerManagerOptions()
	if err != nil {
		t.Fatal(err)
	}
	db := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(db)
	inSets := func(sets cliflag.NamedFlagSets) func(string) bool {
		return func(name string) bool {
			for _, set := range sets.FlagSets {
				if set.Lookup(name) != nil {
					return true
				}
			}
			return false
		}
	}
	for component, exists := range map[componentconfig.FlagComponent]func(string) bool{
		componentconfig.FlagAPIServer: inSets(serverOptions.NewServerRunOptions().Flags()),
		componentconfig.ControllerManager: inSets(manager.Flags(
			managerApp.KnownControllers(), managerApp.ControllersDisabledByDefault(), managerApp.ControllerAliases())),
		componentconfig.FlagScheduler: inSets(*schedulerOptions.NewOptions().Flags),
		componentconfig.FlagEtcd:      func(name string) bool { return db.Lookup(name) != nil },
	} {
		names, _ := componentconfig.FlagNames(component)
		for _, name := range names {
			if !exists(name) {
				t.Errorf("%s has no flag --%s", component, name)
			}
		}
	}
}

// freeEndpoint is an address where nothing listens.
func freeEndpoint(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// A control plane is not started with data that a newer version wrote, or without the data that it had.
func TestWorkloadDataIsGuarded(t *testing.T) {
	c := config()
	c.Version, c.Endpoint = buildinfo.Kubernetes(), freeEndpoint(t) // that of config() is another cluster's where one runs
	for name, test := range map[string]struct{ recorded, reason string }{
		"newer": {"v99.0.0", processconfig.ReasonDataVersion}, "gone": {"v1.30.0", processconfig.ReasonDataMissing},
	} {
		folder := processconfig.Folder(t.TempDir())
		if err := folder.WriteRun(processconfig.Run{PID: 1, Version: test.recorded}); err != nil {
			t.Fatal(err)
		}
		if name == "newer" {
			if err := os.MkdirAll(filepath.Join(folder.Etcd(), "member"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		err := RunWorkload(t.Context(), WorkloadConfig{Config: c, Folder: folder, Now: time.Now})
		if f := fault.As(err); f == nil || f.Reason != test.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}
