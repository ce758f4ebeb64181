package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/controlplane/pki"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/policy"
	"github.com/slipwayhq/slipway/internal/providerset"
)

func TestVerbosity(t *testing.T) { // ME-03
	level := &slog.LevelVar{}
	h := verbosity(level)
	cases := []struct {
		reason, method, body string
		code                 int
		answer               string
		level                slog.Level
	}{
		{"the level at the start", http.MethodGet, "", 200, "0\n", 0},
		{"more", http.MethodPut, "4", 200, "log level set to 4\n", -4},
		{"it stays", http.MethodGet, "", 200, "4\n", -4},
		{"no number", http.MethodPut, "loud", 400, "send a number from 0 to 10\n", -4},
		{"too much", http.MethodPut, "11", 400, "send a number from 0 to 10\n", -4},
		{"another verb", http.MethodPost, "4", 405, "use GET or PUT\n", -4},
		{"back", http.MethodPut, "0\n", 200, "log level set to 0\n", 0},
	}
	for _, tc := range cases {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tc.method, "/debug/flags/v", strings.NewReader(tc.body)))
		body, err := io.ReadAll(w.Result().Body)
		if err != nil || w.Code != tc.code || string(body) != tc.answer || level.Level() != tc.level {
			t.Errorf("%s: %d %q, level %d, %v", tc.reason, w.Code, body, level.Level(), err)
		}
	}
}

func TestDiagnostics(t *testing.T) { // ME-03
	o := diagnostics(Endpoints{Diagnostics: ":1", Verbosity: &slog.LevelVar{}}, &PlanStore{})
	if !o.SecureServing || o.FilterProvider == nil || o.BindAddress != ":1" {
		t.Errorf("by default: TLS, and only to who may: %+v", o)
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/profile", "/debug/flags/v", "/debug/plans/"} {
		if o.ExtraHandlers[path] == nil {
			t.Errorf("%s is not served", path)
		}
	}
	if o.CertDir != "" || len(o.TLSOpts) > 0 {
		t.Errorf("by default: a certificate of its own, and tokens: %+v", o)
	}
	ca, err := pki.NewAuthority(pki.Authority{Name: "ca"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	o = diagnostics(Endpoints{CertFile: "/pki/a.crt", KeyFile: "/pki/a.key", ClientCA: ca.CertPEM}, &PlanStore{})
	var served tls.Config
	for _, change := range o.TLSOpts {
		change(&served)
	}
	if o.CertDir != "/pki" || o.CertName != "a.crt" || o.KeyName != "a.key" || served.ClientAuth != tls.VerifyClientCertIfGiven || served.ClientCAs == nil {
		t.Errorf("in slipway up: %+v, %+v", o, &served)
	}
	if o := diagnostics(Endpoints{Insecure: true}, nil); o.SecureServing || o.ExtraHandlers["/debug/plans/"] != nil || o.FilterProvider != nil || o.ExtraHandlers["/debug/flags/v"] != nil {
		t.Errorf("insecure: %+v", o)
	}
}

func TestGatesThatContradict(t *testing.T) { // FG-03
	for name, tc := range map[string]struct {
		gates string
		ok    bool
	}{
		"default":     {"", true},
		"alone":       {"PriorityQueue=false", false},
		"both off":    {"PriorityQueue=false,ReconcilerRateLimiting=false", true},
		"no limiting": {"ReconcilerRateLimiting=false", true},
	} {
		gates, err := providerset.NewGates()
		if err != nil {
			t.Fatal(err)
		}
		if err := gates.Set(tc.gates); err != nil {
			t.Fatal(err)
		}
		_, err = Config{Gates: gates}.withDefaults()
		if (err == nil) != tc.ok || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGatesThatNeedAnother(t *testing.T) { // FG-01
	kubeadm := policy.Default()
	kubeadm.Disable(providerset.Core)
	for name, tc := range map[string]struct {
		gates  string
		policy policy.Configuration
		refuse string
	}{
		"in-place updates without extensions": {"InPlaceUpdates=true", policy.Default(), "feature gate InPlaceUpdates needs RuntimeSDK, by which extensions update Machines: enable the second, or disable the first"},
		"in-place updates":                    {"InPlaceUpdates=true,RuntimeSDK=true", policy.Default(), ""},
		"the core runs elsewhere":             {"InPlaceUpdates=true", kubeadm, ""},
		"all alpha gates":                     {"AllAlpha=true", policy.Default(), ""},
		"off, as by default":                  {"ClusterTopology=false,InPlaceUpdates=false,KubeadmBootstrapFormatIgnition=false", policy.Default(), ""},
	} {
		gates, err := providerset.NewGates()
		if err != nil {
			t.Fatal(err)
		}
		if err := gates.Set(tc.gates); err != nil {
			t.Fatal(err)
		}
		_, err = Config{Gates: gates, Policy: tc.policy}.withDefaults()
		if tc.refuse == "" && err != nil || tc.refuse != "" && (fault.KindOf(err) != fault.Invalid || fault.UserMessage(err) != tc.refuse) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTopologyNeedsItsGate(t *testing.T) { // MS-01, FG-01
	gates, err := providerset.NewGates()
	if err != nil {
		t.Fatal(err)
	}
	if (Config{Gates: gates}).machineSets().Topology {
		t.Error("without ClusterTopology nobody makes topologies: MachineSets need no second finalizer")
	}
	if err := gates.Set("ClusterTopology=true"); err != nil {
		t.Fatal(err)
	}
	if !(Config{Gates: gates}).machineSets().Topology {
		t.Error("with ClusterTopology templates go with the last MachineSet")
	}
}

// TestMemory: the cache holds Secrets and ConfigMaps of clusters only, drops the managed fields of others, and the
// client never reads these kinds from it.
func TestMemory(t *testing.T) { // RC-07
	options, err := cacheOptions(Config{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for o, by := range options.ByObject {
		switch o.(type) {
		case *corev1.Secret:
			kinds["Secret"] = true
		case *corev1.ConfigMap:
			kinds["ConfigMap"] = true
		default:
			continue
		}
		if by.Label.Matches(labels.Set{}) || !by.Label.Matches(labels.Set{clusterv1.ClusterNameLabel: "c"}) {
			t.Errorf("%T: %s", o, by.Label)
		}
	}
	var live []string
	for _, o := range clientOptions().Cache.DisableFor {
		live = append(live, strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."))
	}
	if diff := cmp.Diff([]string{"Secret", "ConfigMap"}, live); diff != "" || len(kinds) != 2 {
		t.Errorf("kinds %v, live (-want +got):\n%s", kinds, diff)
	}
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}, {Manager: kube.ManagerPrefix + "machine"}}}}
	out, err := options.DefaultTransform(m)
	if err != nil || len(out.(*clusterv1.Machine).ManagedFields) != 1 {
		t.Errorf("managed fields: %+v, %v", out, err)
	}
}

func TestTracing(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "")
	if p, err := tracing(context.Background(), Config{}); p != nil || err != nil {
		t.Errorf("off by default: %v, %v", p, err)
	}
	spans := tracetest.NewInMemoryExporter()
	keep := exporter{spans}
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	p, err := tracing(context.Background(), Config{SpanExporter: keep})
	if err != nil || p == nil {
		t.Fatalf("on by the environment: %v", err)
	}
	_, span := p.Tracer("test").Start(context.Background(), "a span")
	span.End()
	if err := p.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	list := spans.GetSpans()
	if len(list) != 1 || list[0].Name != "a span" || !strings.Contains(list[0].Resource.String(), "service.name=slipway") {
		t.Errorf("%+v", list)
	}
}

// exporter keeps the spans when it ends.
type exporter struct{ *tracetest.InMemoryExporter }

func (exporter) Shutdown(context.Context) error { return nil }

var _ sdktrace.SpanExporter = exporter{}

// A workload cluster has the port of the management cluster where it cannot have its address: on a host whose clusters manage others,
// all of them are at 6443.
func TestReservedPorts(t *testing.T) {
	allowed := policy.Default()
	allowed.ControlPlanes.Addresses = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/16")}
	for name, tc := range map[string]struct {
		server string
		policy policy.Configuration
		want   []uint16
	}{
		"slipway up":          {"https://127.0.0.1:6440", policy.Default(), []uint16{9443, 6440}},
		"another cluster":     {"https://172.16.0.1:6443", policy.Default(), []uint16{9443}},
		"an address to have":  {"https://172.16.0.1:6443", allowed, []uint16{9443, 6443}},
		"a name":              {"https://management.example:6443", policy.Default(), []uint16{9443, 6443}},
		"on loopback, mapped": {"https://[::ffff:127.0.0.1]:6440", policy.Default(), []uint16{9443, 6440}},
	} {
		c := Config{Webhook: Webhook{Port: 9443}, REST: &rest.Config{Host: tc.server}, Policy: tc.policy}
		if got := c.reservedPorts(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
