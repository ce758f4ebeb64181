package hook

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/hook/hooktest"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// toggled answers well or with HTTP 500.
func toggled(broken *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		hooktest.Raw(good)(w, r)
	}
}

// RT-19: a handler that fails is left alone, retried, and comes back.
func TestCircuit(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	var broken atomic.Bool
	broken.Store(true)
	x.Handle(hooktest.Handler("fail", "BeforeClusterCreate"), toggled(&broken))
	w.mustDiscover(x.ExtensionConfig("ext"))
	var changes []bool
	w.OnChange(func(name string) { changes = append(changes, len(w.State(name).Failing) > 0) })
	do := func() error {
		call, _ := creation()
		return w.Call(t.Context(), cluster("ns"), "fail.ext", call)
	}
	for range 5 {
		if err := do(); reasonOf(err) != reasonHTTPStatus {
			t.Fatal(err)
		}
	}
	before := len(x.Bodies(pathOf("fail")))
	err := do()
	host := x.Listener.Addr().String()
	if want := "handler fail.ext: " + host + " answered HTTP 500 Internal Server Error: correct the extension, or spec.clientConfig of ExtensionConfig ext if that names another server"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if n := len(x.Bodies(pathOf("fail"))); n != before {
		t.Errorf("the handler was called %d times while its circuit is open", n-before)
	}
	w.mustDiscover(x.ExtensionConfig("ext"))
	if len(w.State("ext").Failing) == 0 {
		t.Error("discovery closed a circuit that wrong answers opened")
	}
	w.clock.forward(time.Second)
	if err := do(); reasonOf(err) != reasonHTTPStatus {
		t.Errorf("the trial: %v", err)
	}
	w.clock.forward(time.Second)
	if err := do(); reasonOf(err) != ReasonCircuitOpen {
		t.Errorf("the second pause is longer: %v", err)
	}
	broken.Store(false)
	w.clock.forward(time.Second)
	for range 2 {
		if err := do(); err != nil {
			t.Errorf("back again: %v", err)
		}
	}
	if diff := cmp.Diff([]bool{true, true, false}, changes); diff != "" {
		t.Errorf("open after each change:\n%s", diff)
	}
}

// What the extension says is no failure of the extension.
func TestAnswersKeepTheCircuitClosed(t *testing.T) {
	for name, text := range map[string]string{
		"Failure": strings.Replace(good, "Success", "Failure", 1), "wrong kind": strings.Replace(good, "Create", "Delete", 1),
		"no status": strings.Replace(good, "Success", "", 1),
	} {
		w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
		x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(text))
		w.mustDiscover(x.ExtensionConfig("ext"))
		for range 20 {
			call, _ := creation()
			if _, err := w.CallAll(t.Context(), cluster("ns"), call); err == nil || reasonOf(err) == ReasonCircuitOpen {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// A server that went away and came back is noticed by discovery, which costs no call.
func TestDiscoveryClosesTheCircuit(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(good))
	c := x.ExtensionConfig("ext")
	w.mustDiscover(c)
	at := x.Listener.Addr().String()
	x.CloseClientConnections()
	x.Close()
	for range 5 {
		call, _ := creation()
		if _, err := w.CallAll(t.Context(), cluster("ns"), call); reasonOf(err) != reasonRefused {
			t.Fatal(err)
		}
	}
	s := w.State("ext")
	if !s.Circuit.Open || s.Next != s.Circuit.RetryAt {
		t.Errorf("open %t, next discovery %s, want %s", s.Circuit.Open, s.Next, s.Circuit.RetryAt)
	}
	back := hooktest.Start(t, hooktest.Options{At: at, Authority: x.Authority})
	back.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(good))
	w.mustDiscover(c)
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

// Another address is another server: nothing bad is known of it.
func TestNewAddressClosesTheCircuit(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Status(500))
	w.mustDiscover(x.ExtensionConfig("ext"))
	for range 5 {
		call, _ := creation()
		_, _ = w.CallAll(t.Context(), cluster("ns"), call)
	}
	if len(w.State("ext").Failing) == 0 {
		t.Fatal("the circuit is closed")
	}
	moved := hooktest.Start(t, hooktest.Options{})
	moved.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(good))
	c := moved.ExtensionConfig("ext")
	c.Generation = 2
	w.mustDiscover(c)
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Error(err)
	}
}

// An extension that hangs has at most so many callers waiting, and none of another extension's.
func TestSlowExtensionIsBounded(t *testing.T) {
	w := newWorld(t)
	slow, quick := hooktest.Start(t, hooktest.Options{}), hooktest.Start(t, hooktest.Options{})
	let := make(chan struct{})
	var inside atomic.Int32
	hang := hooktest.Handler("hang", "BeforeClusterCreate")
	hang.TimeoutSeconds, hang.FailurePolicy = ptr(int32(30)), ptr(hooksv1.FailurePolicyIgnore)
	slow.Handle(hang, func(rw http.ResponseWriter, r *http.Request) {
		inside.Add(1)
		<-let
		hooktest.Raw(good)(rw, r)
	})
	quick.Handle(hooktest.Handler("go", "BeforeClusterCreate"), hooktest.Raw(good))
	w.mustDiscover(slow.ExtensionConfig("slow"))
	w.mustDiscover(quick.ExtensionConfig("quick"))
	var wg sync.WaitGroup
	results := make(chan string, 20)
	for range 20 {
		wg.Go(func() {
			call, _ := creation()
			results <- reasonOf(w.Call(context.Background(), cluster("ns"), "hang.slow", call))
		})
	}
	for range 20 - callsAtOnce { // those that found no slot come back although no one was let go
		if got := <-results; got != ReasonBusy {
			t.Errorf("got %q, want %s: a limit of ours is no failure of the extension, so that Ignore does not hide it", got, ReasonBusy)
		}
	}
	call, _ := creation()
	if err := w.Call(t.Context(), cluster("ns"), "go.quick", call); err != nil {
		t.Errorf("the other extension: %v", err)
	}
	if n := inside.Load(); n != callsAtOnce {
		t.Errorf("%d calls in flight, want %d", n, callsAtOnce)
	}
	close(let)
	wg.Wait()
	for range callsAtOnce {
		if got := <-results; got != "" {
			t.Errorf("a call that was let go: %q", got)
		}
	}
}

// RT-19: extensions that are down, for a long time, leave nothing behind.
func TestNoGoroutinesAreLeft(t *testing.T) {
	w, healthy := newWorld(t), hooktest.Start(t, hooktest.Options{})
	healthy.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(good))
	w.mustDiscover(healthy.ExtensionConfig("up"))
	hanging := hooktest.Start(t, hooktest.Options{})
	h := hooktest.Handler("check", "BeforeClusterCreate")
	h.TimeoutSeconds = ptr(int32(1))
	hanging.Handle(h, hooktest.Silent)
	down := hanging.ExtensionConfig("down")
	w.mustDiscover(down)
	count := func() int {
		for range 200 {
			runtime.Gosched()
		}
		return runtime.NumGoroutine()
	}
	work := func(rounds int) {
		for range rounds {
			for _, handler := range []string{"check.up", "check.down"} {
				call, _ := creation()
				_ = w.Call(t.Context(), cluster("ns"), handler, call)
			}
		}
	}
	work(6)
	if len(w.State("down").Failing) == 0 {
		t.Fatal("the circuit is closed")
	}
	hanging.CloseClientConnections()
	hanging.Close()
	before := count()
	for range 50 {
		w.clock.forward(time.Hour)
		work(5)
		w.discover(down)
	}
	for deadline := time.Now().Add(time.Minute); count() > before+3; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines before, %d after", before, count())
		}
	}
}

// RT-16: handlers of an older version get the request in theirs, and their answer comes back in the newest; both versions
// of a hook at the same time.
func TestOlderVersion(t *testing.T) {
	catalog, err := hooks.New(append(hooks.ClusterAPI(), newer()), conversion())
	if err != nil {
		t.Fatal(err)
	}
	w, x := newWorld(t, func(c *Config) { c.Catalog = catalog }), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("old", "BeforeClusterCreate"), hooktest.Answer(answered("from the old one", 20)))
	current := hooktest.Handler("new", "BeforeClusterCreate")
	current.RequestHook.APIVersion = hooks.Group + "/v1beta1"
	x.Handle(current, hooktest.Raw(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1beta1","kind":"BeforeClusterCreateResponse","status":"Success","message":"from the new one","wait":{"seconds":10}}`))
	c := x.ExtensionConfig("ext")
	c.Spec.Settings = map[string]string{"a": "b"}
	w.mustDiscover(c)
	request := &BeforeClusterCreateRequest{Where: Place{Namespace: "ns", Name: "c"}}
	single := &BeforeClusterCreateResponse{}
	if err := w.Call(t.Context(), cluster("ns"), "old.ext", Invocation{Request: request, Response: single}); err != nil {
		t.Fatal(err)
	}
	want := &BeforeClusterCreateResponse{Wait: Wait{Seconds: 20}}
	want.APIVersion, want.Kind, want.Status, want.Message = hooks.Group+"/v1beta1", "BeforeClusterCreateResponse", "Success", "from the old one"
	if diff := cmp.Diff(want, single); diff != "" {
		t.Errorf("the old handler's answer, up:\n%s", diff)
	}
	body := string(x.Bodies(pathOf("old"))[0])
	for _, part := range []string{`"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"`, `"name":"c"`, `"settings":{"a":"b"}`} {
		if !strings.Contains(body, part) {
			t.Errorf("the old handler's request, down, has no %s: %s", part, body)
		}
	}
	path := hooks.ID{Name: create, Version: "v1beta1"}.Path("new")
	if err := w.Call(t.Context(), cluster("ns"), "new.ext", Invocation{Request: request, Response: &BeforeClusterCreateResponse{}}); err != nil {
		t.Fatal(err)
	}
	if got := string(x.Bodies(path)[0]); !strings.Contains(got, `"where":{"namespace":"ns","name":"c"}`) {
		t.Errorf("the new handler's request: %s", got)
	}
	old, _ := creation()
	if err := w.Call(t.Context(), cluster("ns"), "new.ext", old); reasonOf(err) != reasonHookMismatch {
		t.Errorf("a request older than the handler: %v", err)
	}
}

// RT-14: a request whose answer is kept is not made at all: those of topologies are megabytes.
func TestKeptAnswersNeedNoRequest(t *testing.T) {
	encoded, step := 0, conversion()
	down := step.RequestDown
	step.RequestDown = func(in, out kruntime.Object) error {
		encoded++
		return down(in, out)
	}
	catalog, err := hooks.New(append(hooks.ClusterAPI(), newer()), step)
	if err != nil {
		t.Fatal(err)
	}
	w, x := newWorld(t, func(c *Config) { c.Catalog = catalog }), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("old", "BeforeClusterCreate"), hooktest.Answer(answered("wait", 20)))
	w.mustDiscover(x.ExtensionConfig("ext"))
	for _, want := range []struct {
		input          string
		calls, encoded int
	}{{"a", 1, 1}, {"a", 1, 1}, {"b", 2, 2}, {"", 3, 3}, {"", 3, 4}} { // without an input the request itself is what counts
		err := w.Call(t.Context(), cluster("ns"), "old.ext", Invocation{
			Request: &BeforeClusterCreateRequest{Where: Place{Name: "c"}}, Response: &BeforeClusterCreateResponse{}, CacheKey: want.input,
		})
		if n := len(x.Bodies(pathOf("old"))); err != nil || n != want.calls || encoded != want.encoded {
			t.Errorf("input %q: %v, %d calls and %d requests made, want %d and %d", want.input, err, n, encoded, want.calls, want.encoded)
		}
	}
}

// RT-13, RT-16
func TestAggregationAcrossVersions(t *testing.T) {
	catalog, err := hooks.New(append(hooks.ClusterAPI(), newer()), conversion())
	if err != nil {
		t.Fatal(err)
	}
	w, x := newWorld(t, func(c *Config) { c.Catalog = catalog }), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("old", "BeforeClusterCreate"), hooktest.Answer(answered("old", 20)))
	current := hooktest.Handler("new", "BeforeClusterCreate")
	current.RequestHook.APIVersion = hooks.Group + "/v1beta1"
	x.Handle(current, hooktest.Raw(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1beta1","kind":"BeforeClusterCreateResponse","status":"Success","message":"new","wait":{"seconds":10}}`))
	w.mustDiscover(x.ExtensionConfig("ext"))
	all := &BeforeClusterCreateResponse{}
	if _, err := w.CallAll(t.Context(), cluster("ns"), Invocation{Request: &BeforeClusterCreateRequest{}, Response: all}); err != nil {
		t.Fatal(err)
	}
	if all.Message != "new, old" || all.Wait.Seconds != 10 {
		t.Errorf("got %+v", all)
	}
}

// A second version of BeforeClusterCreate, for tests only.
type (
	Place struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
	Wait struct {
		Seconds int32 `json:"seconds"`
	}
	BeforeClusterCreateRequest struct {
		metav1.TypeMeta       `json:",inline"`
		hooksv1.CommonRequest `json:",inline"`
		Where                 Place `json:"where"`
	}
	BeforeClusterCreateResponse struct {
		metav1.TypeMeta        `json:",inline"`
		hooksv1.CommonResponse `json:",inline"`
		Wait                   Wait `json:"wait"`
	}
)

func (r *BeforeClusterCreateRequest) DeepCopyObject() kruntime.Object  { c := *r; return &c }
func (r *BeforeClusterCreateResponse) DeepCopyObject() kruntime.Object { c := *r; return &c }
func (r *BeforeClusterCreateResponse) GetRetryAfterSeconds() int32     { return r.Wait.Seconds }
func (r *BeforeClusterCreateResponse) SetRetryAfterSeconds(s int32)    { r.Wait.Seconds = s }

func newer() hooks.Hook {
	return hooks.Hook{
		ID:          hooks.ID{Name: create, Version: "v1beta1"},
		NewRequest:  func() kruntime.Object { return &BeforeClusterCreateRequest{} },
		NewResponse: func() hooks.Response { return &BeforeClusterCreateResponse{} },
	}
}

func conversion() hooks.Conversion {
	return hooks.Conversion{
		Hook: create, Newer: "v1beta1", Older: "v1alpha1",
		RequestDown: hooks.RequestDown(func(in *BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateRequest) error {
			out.CommonRequest = in.CommonRequest
			out.Cluster.Namespace, out.Cluster.Name = in.Where.Namespace, in.Where.Name
			return nil
		}),
		ResponseUp: hooks.ResponseUp(func(in *hooksv1.BeforeClusterCreateResponse, out *BeforeClusterCreateResponse) error {
			out.CommonResponse, out.Wait.Seconds = in.CommonResponse, in.RetryAfterSeconds
			return nil
		}),
	}
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
	want := `# HELP capi_runtime_sdk_requests_total Calls of Runtime Extensions by HTTP status code (or <error> where there was no answer) and status of the response.
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
# HELP slipway_runtime_sdk_calls_in_flight Calls of an extension that wait for their answer.
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

// RT-25
func TestBroken(t *testing.T) {
	listed := func(name string, pairs ...string) runtimev1.ExtensionConfig {
		c := runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for i := 0; i < len(pairs); i += 2 {
			c.Status.Handlers = append(c.Status.Handlers, runtimev1.ExtensionHandler{
				Name: pairs[i] + "." + name, RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: pairs[i+1]}})
		}
		return c
	}
	configs := []runtimev1.ExtensionConfig{
		listed("zoo", "b", "BeforeClusterCreate", "a", "BeforeClusterCreate", "c", "BeforeClusterDelete"), listed("none", "d", "BeforeClusterDelete"),
		listed("ant", "x", "BeforeClusterCreate", "y", "GeneratePatches"),
	}
	removed := []hooks.ID{{Name: create, Version: "v1alpha1"}, {Name: hooks.Name{Group: hooks.Group, Hook: "GeneratePatches"}, Version: "v1alpha1"}, {Name: create, Version: "v1"}}
	var got []string
	for _, b := range Broken(removed, configs) {
		got = append(got, b.String())
	}
	want := []string{
		"ExtensionConfig ant: BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by x.ant",
		"ExtensionConfig ant: GeneratePatches of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by y.ant",
		"ExtensionConfig zoo: BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v1alpha1 is served by a.zoo, b.zoo",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
