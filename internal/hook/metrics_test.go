package hook

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

const circuitMetric = `# HELP slipway_runtime_sdk_circuit_open 1 while an extension, or one of its handlers, is not called because calls failed, otherwise 0.
# TYPE slipway_runtime_sdk_circuit_open gauge
slipway_runtime_sdk_circuit_open{extension="ext"} `

// circuit compares the metric with what it should say.
func (w *world) circuit(want string) {
	w.t.Helper()
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(circuitMetric+want+"\n"), "slipway_runtime_sdk_circuit_open"); err != nil {
		w.t.Error(err)
	}
}

// nothingIsSaid checks that no metric is about an extension.
func (w *world) nothingIsSaid(when string) {
	w.t.Helper()
	for _, name := range []string{
		"slipway_runtime_sdk_circuit_open", "slipway_runtime_sdk_calls_in_flight", "slipway_runtime_sdk_deprecated_hooks",
	} {
		if n, err := testutil.GatherAndCount(w.metrics, name); err != nil || n != 0 {
			w.t.Errorf("%s: %d series of %s, %v; want none", when, n, name, err)
		}
	}
}

// opened makes a registry and an extension whose circuit is open.
func opened(t *testing.T) (*world, *hooktest.Extension) {
	t.Helper()
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Status(http.StatusInternalServerError))
	w.mustDiscover(x.ExtensionConfig("ext"))
	for range 5 {
		call, _ := creation()
		_, _ = w.CallAll(t.Context(), cluster("ns"), call)
	}
	if len(w.State("ext").Failing) == 0 {
		t.Fatal("the circuit is closed")
	}
	w.circuit("1")
	return w, x
}

// RT-18: the metric of the circuit is that of the server which is called.
func TestCircuitMetricOfAnotherServer(t *testing.T) {
	w, x := opened(t)
	c := x.ExtensionConfig("ext")
	c.Spec.ClientConfig.CABundle = append(c.Spec.ClientConfig.CABundle, hooktest.NewAuthority(t).PEM...)
	c.Generation++
	if s := w.mustDiscover(c); s.Circuit.Open || len(s.Failing) > 0 {
		t.Error("another authority, and the circuit is still open")
	}
	w.circuit("0")
}

// RT-18, RT-21: an extension that is gone has no metrics, and what was under way when it went brings none back.
func TestMetricsOfAForgottenExtension(t *testing.T) {
	w, _ := opened(t)
	w.Forget("ext")
	w.nothingIsSaid("forgotten")

	catalog, err := hooks.New(deprecate(hooks.ClusterAPI(), "BeforeClusterCreate"))
	if err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, func(c *Config) { c.Catalog = catalog })
	x := hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Status(http.StatusInternalServerError))
	c := x.ExtensionConfig("ext")
	w.mustDiscover(c)
	for range 4 {
		call, _ := creation()
		_, _ = w.CallAll(t.Context(), cluster("ns"), call)
	}
	x.Serve(pathOf("check"), func(rw http.ResponseWriter, _ *http.Request) {
		w.Forget("ext")
		rw.WriteHeader(http.StatusInternalServerError) // the fifth: the circuit opens
	})
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err == nil {
		t.Error("the call that was under way did not fail")
	}
	w.nothingIsSaid("a call was under way")

	found := &hooksv1.DiscoveryResponse{TypeMeta: typeOf("DiscoveryResponse"), Handlers: []hooksv1.ExtensionHandler{
		hooktest.Handler("check", "BeforeClusterCreate")}}
	found.Status = hooksv1.ResponseStatusSuccess
	x.Serve(hooks.Discovery.Path(""), func(rw http.ResponseWriter, r *http.Request) {
		w.Forget("ext")
		hooktest.Respond(found)(rw, r)
	})
	if s, err := w.Discover(t.Context(), c); err != nil || s.Discovered {
		t.Errorf("%+v, %v", s, err)
	}
	w.nothingIsSaid("a discovery was under way")
}

// RT-18, RT-21: a call of an extension that was deleted and made again is not one of the new extension.
func TestMetricsOfAnExtensionMadeAgain(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	c := x.ExtensionConfig("ext")
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), func(rw http.ResponseWriter, r *http.Request) {
		again := c.DeepCopy()
		again.UID += "-2"
		if _, err := w.announce(again); err != nil {
			t.Error(err)
		}
		hooktest.Raw(good)(rw, r)
	})
	w.mustDiscover(c)
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Fatal(err)
	}
	w.nothingIsSaid("made again while it was called")
}

// RT-18
func TestMetrics(t *testing.T) {
	catalog, err := hooks.New(deprecate(hooks.ClusterAPI(), "BeforeClusterCreate"))
	if err != nil {
		t.Fatal(err)
	}
	w, x := newWorld(t, func(c *Config) { c.Catalog = catalog }), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("good", "BeforeClusterCreate"), hooktest.Raw(good))
	x.Handle(hooktest.Handler("failure", "BeforeClusterCreate"), hooktest.Raw(strings.Replace(good, "Success", "Failure", 1)))
	x.Handle(hooktest.Handler("error", "BeforeClusterCreate"), hooktest.Status(503))
	x.Handle(hooktest.Handler("cut", "BeforeClusterCreate"), hooktest.Cut(false))
	x.Handle(hooktest.Handler("page", "BeforeClusterCreate"), hooktest.Raw("<html>"))
	w.mustDiscover(x.ExtensionConfig("ext"))
	for _, handler := range []string{"good", "good", "failure", "error", "cut", "page"} {
		call, _ := creation()
		_ = w.Call(t.Context(), cluster("ns"), handler+".ext", call)
	}
	common := fmt.Sprintf(`group="hooks.runtime.cluster.x-k8s.io",hook="BeforeClusterCreate",host="%s"`, x.Listener.Addr())
	want := `# HELP capi_runtime_sdk_requests_total Calls of Runtime Extensions by HTTP status code (or <error> without a response) and status in the response.
# TYPE capi_runtime_sdk_requests_total counter
capi_runtime_sdk_requests_total{code="200",` + strings.Replace(common, "BeforeClusterCreate", "Discovery", 1) + `,status="Success",version="v1alpha1"} 1
capi_runtime_sdk_requests_total{code="200",` + common + `,status="Failure",version="v1alpha1"} 1
capi_runtime_sdk_requests_total{code="200",` + common + `,status="Success",version="v1alpha1"} 2
capi_runtime_sdk_requests_total{code="200",` + common + `,status="Unknown",version="v1alpha1"} 1
capi_runtime_sdk_requests_total{code="503",` + common + `,status="Unknown",version="v1alpha1"} 1
capi_runtime_sdk_requests_total{code="<error>",` + common + `,status="Unknown",version="v1alpha1"} 1
# HELP slipway_runtime_sdk_deprecated_hooks 1 for every deprecated version of a hook that an extension has a handler for.
# TYPE slipway_runtime_sdk_deprecated_hooks gauge
slipway_runtime_sdk_deprecated_hooks{extension="ext",group="hooks.runtime.cluster.x-k8s.io",hook="BeforeClusterCreate",version="v1alpha1"} 1
# HELP slipway_runtime_sdk_calls_in_flight Calls to an extension that are in flight.
# TYPE slipway_runtime_sdk_calls_in_flight gauge
slipway_runtime_sdk_calls_in_flight{extension="ext"} 0
`
	if err := testutil.GatherAndCompare(w.metrics, strings.NewReader(want), "capi_runtime_sdk_requests_total",
		"slipway_runtime_sdk_deprecated_hooks", "slipway_runtime_sdk_calls_in_flight"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(w.metrics, "capi_runtime_sdk_request_duration_seconds"); err != nil || n != 2 {
		t.Errorf("%d series of durations, %v; want one for each hook", n, err)
	}
	w.Forget("ext")
	if n, err := testutil.GatherAndCount(w.metrics, "slipway_runtime_sdk_deprecated_hooks"); err != nil || n != 0 {
		t.Errorf("%d series of an extension that is gone, %v", n, err)
	}
}

func deprecate(list []hooks.Hook, hook string) []hooks.Hook {
	for i := range list {
		if list[i].ID.Hook == hook {
			list[i].Deprecation = &hooks.Deprecation{Since: hooks.Release{Minor: "v1.14", Date: "2026-08-01"}}
		}
	}
	return list
}

func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	w, x := newWorld(t, func(c *Config) { c.Tracer = provider.Tracer("test") }), hooktest.Start(t, hooktest.Options{})
	var parent string
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), func(rw http.ResponseWriter, r *http.Request) {
		parent = r.Header.Get("Traceparent")
		if kind := r.Header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("the request is %s", kind)
		}
		hooktest.Status(500)(rw, r)
	})
	w.mustDiscover(x.ExtensionConfig("ext"))
	call, _ := creation()
	_, _ = w.CallAll(t.Context(), cluster("ns"), call)
	spans := recorder.Ended()
	if len(spans) != 1 || spans[0].Name() != "call BeforeClusterCreate" || spans[0].Status().Description == "" {
		t.Fatalf("spans %v", spans)
	}
	if id := spans[0].SpanContext().TraceID().String(); !strings.Contains(parent, id) {
		t.Errorf("traceparent %q is not of trace %s", parent, id)
	}
}
