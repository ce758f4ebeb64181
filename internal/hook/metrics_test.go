package hook

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/hook/hooktest"
	"github.com/slipwayhq/slipway/sdk/hooks"
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
		hooktest.Answer(found)(rw, r)
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
