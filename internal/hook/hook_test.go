package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// world is a registry with a clock and namespaces.
type world struct {
	*Extensions
	t          testing.TB
	clock      *clock
	namespaces map[string]labels.Set
	metrics    *prometheus.Registry
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	w := &world{
		t: t, clock: &clock{now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}, metrics: prometheus.NewRegistry(),
		namespaces: map[string]labels.Set{"ns": nil, "prod": {"stage": "prod"}},
	}
	cfg := Config{
		Now: w.clock.Now, Random: func() float64 { return 0.5 }, Registerer: w.metrics,
		NamespaceLabels: func(_ context.Context, namespace string) (labels.Set, error) {
			set, ok := w.namespaces[namespace]
			if !ok {
				return nil, errors.New("no such namespace")
			}
			return set, nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if w.Extensions, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	w.Prime()
	return w
}

// discover asks the extension for its handlers and fails the test if that does not work.
func (w *world) discover(c *runtimev1.ExtensionConfig) ExtensionState {
	w.t.Helper()
	s, err := w.Discover(context.Background(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) mustDiscover(c *runtimev1.ExtensionConfig) ExtensionState {
	w.t.Helper()
	s := w.discover(c)
	if s.Problem != nil {
		w.t.Fatalf("discovery: %v", s.Problem)
	}
	return s
}

var create = hooks.Name{Group: hooks.Group, Hook: "BeforeClusterCreate"}

// pathOf returns where a handler of BeforeClusterCreate is served.
func pathOf(handler string) string { return hooks.ID{Name: create, Version: "v1alpha1"}.Path(handler) }

func cluster(namespace string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c", UID: "uid-c"}}
}

// creation is a call of BeforeClusterCreate.
func creation() (Invocation, *hooksv1.BeforeClusterCreateResponse) {
	response := &hooksv1.BeforeClusterCreateResponse{}
	return Invocation{Request: &hooksv1.BeforeClusterCreateRequest{Cluster: ClusterForRequest(cluster("ns"))}, Response: response}, response
}

// answered is a response of BeforeClusterCreate.
func answered(message string, retry int32) *hooksv1.BeforeClusterCreateResponse {
	r := &hooksv1.BeforeClusterCreateResponse{TypeMeta: typeOf("BeforeClusterCreateResponse")}
	r.Status, r.Message, r.RetryAfterSeconds = hooksv1.ResponseStatusSuccess, message, retry
	return r
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: hooks.Discovery.APIVersion(), Kind: kind}
}

func reasonOf(err error) string {
	if f := fault.As(err); f != nil {
		return f.Reason
	}
	if err != nil {
		return "error: " + err.Error()
	}
	return ""
}

// RT-06, RT-08, RT-10: discovery, then a call by name.
func TestDiscoverAndCall(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	h := hooktest.Handler("check", "BeforeClusterCreate")
	h.TimeoutSeconds = ptr.To(int32(7))
	x.Handle(h, hooktest.Respond(answered("fine", 0)))
	s := w.mustDiscover(x.ExtensionConfig("ext"))
	want := []runtimev1.ExtensionHandler{{
		Name: "check.ext", TimeoutSeconds: 7, FailurePolicy: "Fail",
		RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
	}}
	if diff := cmp.Diff(want, StatusHandlers("ext", s.Handlers)); diff != "" {
		t.Errorf("status.handlers:\n%s", diff)
	}
	call, response := creation()
	if err := w.Call(t.Context(), cluster("ns"), "check.ext", call); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answered("fine", 0), response); diff != "" {
		t.Errorf("response:\n%s", diff)
	}
	bodies := x.Bodies("/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/check") // RT-09
	if len(bodies) != 1 {
		t.Fatalf("%d requests, want 1", len(bodies))
	}
	var sent struct{ APIVersion, Kind string }
	if err := json.Unmarshal(bodies[0], &sent); err != nil || sent.Kind != "BeforeClusterCreateRequest" || sent.APIVersion != hooks.Discovery.APIVersion() {
		t.Errorf("request is a %+v, %v", sent, err)
	}
	discovery := x.Bodies("/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery")
	if len(discovery) != 1 || !strings.Contains(string(discovery[0]), `"kind":"DiscoveryRequest"`) {
		t.Errorf("discovery requests: %s", discovery)
	}
	if n := x.Connections(); n != 1 {
		t.Errorf("%d connections for two calls, want 1", n)
	}
}

// RT-07
func TestDiscoveryIsChecked(t *testing.T) {
	many := func(n int) (out []hooksv1.ExtensionHandler) {
		for i := range n {
			out = append(out, hooktest.Handler(fmt.Sprintf("h%d", i), "BeforeClusterCreate"))
		}
		return out
	}
	with := func(change func(*hooksv1.ExtensionHandler)) []hooksv1.ExtensionHandler {
		h := hooktest.Handler("h", "BeforeClusterCreate")
		change(&h)
		return []hooksv1.ExtensionHandler{hooktest.Handler("good", "BeforeClusterCreate"), h}
	}
	tests := map[string]struct {
		handlers []hooksv1.ExtensionHandler
		err      string
	}{
		"none":         {},
		"500 handlers": {handlers: many(500)},
		"513 handlers": {handlers: many(513), err: "the extension has 513 handlers; at most 512 can be registered"},
		"duplicate":    {handlers: append(many(3), many(1)...), err: `handler "h0": the name is not unique`},
		"no DNS label": {handlers: with(func(h *hooksv1.ExtensionHandler) { h.Name = "Not.A_Label" }), err: `handler "Not.A_Label": the name is not a DNS label`},
		"no name":      {handlers: with(func(h *hooksv1.ExtensionHandler) { h.Name = "" }), err: `handler "": the name is not a DNS label`},
		"unknown hook": {
			handlers: with(func(h *hooksv1.ExtensionHandler) { h.RequestHook.Hook = "BeforeLunch" }),
			err:      `handler "h": there is no hook BeforeLunch in hooks.runtime.cluster.x-k8s.io/v1alpha1`,
		},
		"unknown version": {
			handlers: with(func(h *hooksv1.ExtensionHandler) { h.RequestHook.APIVersion = hooks.Group + "/v9" }),
			err:      `handler "h": there is no hook BeforeClusterCreate in hooks.runtime.cluster.x-k8s.io/v9; there is BeforeClusterCreate in hooks.runtime.cluster.x-k8s.io/v1alpha1`,
		},
		"spelling of the proposal": {
			handlers: with(func(h *hooksv1.ExtensionHandler) {
				h.RequestHook = hooksv1.GroupVersionHook{APIVersion: "hook.runtime.cluster.x-k8s.io/v1alpha1", Hook: "generatePatches"}
			}),
			err: `handler "h": there is no hook generatePatches in hook.runtime.cluster.x-k8s.io/v1alpha1; there is GeneratePatches in hooks.runtime.cluster.x-k8s.io/v1alpha1`,
		},
		"no version": {
			handlers: with(func(h *hooksv1.ExtensionHandler) { h.RequestHook.APIVersion = "" }),
			err:      `handler "h": apiVersion "": want <group>/<version>`,
		},
		"timeout 0 is the default": {handlers: with(func(h *hooksv1.ExtensionHandler) { h.TimeoutSeconds = ptr.To(int32(0)) })},
		"timeout 30":               {handlers: with(func(h *hooksv1.ExtensionHandler) { h.TimeoutSeconds = ptr.To(int32(30)) })},
		"timeout 31":               {handlers: with(func(h *hooksv1.ExtensionHandler) { h.TimeoutSeconds = ptr.To(int32(31)) }), err: `handler "h": timeoutSeconds is 31; want 0 to 30`},
		"timeout -1":               {handlers: with(func(h *hooksv1.ExtensionHandler) { h.TimeoutSeconds = ptr.To(int32(-1)) }), err: `handler "h": timeoutSeconds is -1; want 0 to 30`},
		"policy Ignore":            {handlers: with(func(h *hooksv1.ExtensionHandler) { h.FailurePolicy = ptr.To(hooksv1.FailurePolicyIgnore) })},
		"policy Maybe": {
			handlers: with(func(h *hooksv1.ExtensionHandler) { h.FailurePolicy = ptr.To(hooksv1.FailurePolicy("Maybe")) }),
			err:      `handler "h": failurePolicy is "Maybe"; want Fail or Ignore`,
		},
		"all that is wrong": {
			handlers: with(func(h *hooksv1.ExtensionHandler) { h.Name, h.TimeoutSeconds = "good", ptr.To(int32(99)) }),
			err:      `handler "good": timeoutSeconds is 99; want 0 to 30; handler "good": the name is not unique`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
			for _, h := range tt.handlers {
				x.Handle(h, nil)
			}
			s := w.discover(x.ExtensionConfig("ext"))
			if tt.err == "" {
				if s.Problem != nil || len(s.Handlers) != len(tt.handlers) {
					t.Fatalf("%d handlers, problem %v", len(s.Handlers), s.Problem)
				}
				return
			}
			if s.Problem == nil || !strings.HasPrefix(s.Problem.Message, tt.err) || len(s.Handlers) > 0 {
				t.Errorf("problem %v, %d handlers; want %q and none", s.Problem, len(s.Handlers), tt.err)
			}
		})
	}
}

// RT-03
func TestNamespaceSelector(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Respond(answered("called", 0)))
	c := x.ExtensionConfig("ext")
	c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	w.mustDiscover(c)
	for namespace, want := range map[string]struct{ message, reason string }{"prod": {message: "called"}, "ns": {reason: ReasonNamespaceMismatch}} {
		call, response := creation()
		if _, err := w.CallAll(t.Context(), cluster(namespace), call); err != nil || response.Message != want.message {
			t.Errorf("%s: all: message %q, %v; want %q", namespace, response.Message, err, want.message)
		}
		call, _ = creation()
		if err := w.Call(t.Context(), cluster(namespace), "check.ext", call); reasonOf(err) != want.reason {
			t.Errorf("%s: by name: %v, want %q", namespace, err, want.reason)
		}
		names, err := w.Handlers(t.Context(), create, cluster(namespace))
		if err != nil || (len(names) == 1) != (want.reason == "") {
			t.Errorf("%s: handlers %v, %v", namespace, names, err)
		}
	}
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("gone"), call); err == nil {
		t.Error("a namespace that cannot be read was taken for one that is not selected")
	}
}

// RT-04
func TestSettings(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Respond(answered("", 0)))
	c := x.ExtensionConfig("ext")
	c.Spec.Settings = map[string]string{"size": "small", "colour": "red"}
	w.mustDiscover(c)
	call, _ := creation()
	request := call.Request.(*hooksv1.BeforeClusterCreateRequest)
	request.Settings = map[string]string{"size": "large"}
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Fatal(err)
	}
	var sent struct{ Settings map[string]string }
	if err := json.Unmarshal(x.Bodies(pathOf("check"))[0], &sent); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"size": "large", "colour": "red"}, sent.Settings); diff != "" {
		t.Errorf("the request's settings win:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"size": "large"}, request.Settings); diff != "" {
		t.Errorf("the caller's request was changed:\n%s", diff)
	}
}

// RT-12, RT-13
func TestCallAll(t *testing.T) {
	w := newWorld(t)
	var order []string
	serve := func(name string, response any) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			order = append(order, name)
			hooktest.Respond(response)(rw, r)
		}
	}
	failing := answered("no room", 0)
	failing.Status = hooksv1.ResponseStatusFailure
	late, early := hooktest.Start(t, hooktest.Options{}), hooktest.Start(t, hooktest.Options{})
	late.Handle(hooktest.Handler("z", "BeforeClusterCreate"), serve("z.late", answered("", 60)))
	late.Handle(hooktest.Handler("a", "BeforeClusterCreate"), serve("a.late", answered("half way", 5)))
	early.Handle(hooktest.Handler("m", "BeforeClusterCreate"), serve("m.early", answered("done", 0)))
	early.Handle(hooktest.Handler("other", "BeforeClusterDelete"), serve("other.early", answered("", 0)))
	lateConfig, earlyConfig := late.ExtensionConfig("a-late"), early.ExtensionConfig("z-early")
	lateConfig.CreationTimestamp = metav1.NewTime(w.clock.Now())
	earlyConfig.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(-time.Hour))
	w.mustDiscover(lateConfig)
	w.mustDiscover(earlyConfig)
	call, response := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"m.early", "a.late", "z.late"}, order); diff != "" {
		t.Errorf("by creation of the ExtensionConfig, then by name:\n%s", diff)
	}
	if diff := cmp.Diff(answered("done, half way", 5), response); diff != "" {
		t.Errorf("aggregated response:\n%s", diff)
	}
	order = nil
	late.Serve(pathOf("a"), serve("a.late", failing))
	call, _ = creation()
	call.CacheKey = "changed"
	_, err := w.CallAll(t.Context(), cluster("ns"), call)
	if diff := cmp.Diff([]string{"m.early", "a.late"}, order); diff != "" || reasonOf(err) != reasonFailureResponse {
		t.Errorf("after the first error (%v) nobody is called:\n%s", err, diff)
	}
	if want := "handler a.a-late: responded with status Failure: no room"; err == nil || err.Error() != want { // RT-15
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNobodyToCall(t *testing.T) {
	w := newWorld(t)
	call, response := creation()
	response.Message = "old"
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(answered("", 0), response); diff != "" {
		t.Errorf("without handlers:\n%s", diff)
	}
}

// RT-11: which errors a failure policy is about.
func TestWrongCalls(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	h := hooktest.Handler("check", "BeforeClusterCreate")
	h.FailurePolicy = ptr.To(hooksv1.FailurePolicyIgnore)
	x.Handle(h, hooktest.Respond(answered("", 0)))
	w.mustDiscover(x.ExtensionConfig("ext"))
	deletion := Invocation{Request: &hooksv1.BeforeClusterDeleteRequest{}, Response: &hooksv1.BeforeClusterDeleteResponse{}}
	mixed := Invocation{Request: &hooksv1.BeforeClusterDeleteRequest{}, Response: &hooksv1.BeforeClusterCreateResponse{}}
	good, _ := creation()
	tests := map[string]struct {
		handler string
		call    Invocation
		reason  string
	}{
		"right":                {handler: "check.ext", call: good},
		"no such extension":    {handler: "check.other", call: good, reason: reasonNotRegistered},
		"no such handler":      {handler: "other.ext", call: good, reason: reasonNotRegistered},
		"no name":              {handler: "", call: good, reason: reasonNotRegistered},
		"another hook":         {handler: "check.ext", call: deletion, reason: reasonHookMismatch},
		"two different hooks":  {handler: "check.ext", call: mixed, reason: reasonHookMismatch},
		"a request that is no": {handler: "check.ext", call: Invocation{Request: cluster("ns"), Response: good.Response}, reason: reasonHookMismatch},
	}
	for name, tt := range tests {
		if err := w.Call(t.Context(), cluster("ns"), tt.handler, tt.call); reasonOf(err) != tt.reason {
			t.Errorf("%s: %v, want %q", name, err, tt.reason)
		}
	}
}

// RT-21: what is forgotten is not called.
func TestForget(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Respond(answered("called", 0)))
	w.mustDiscover(x.ExtensionConfig("ext"))
	w.Forget("ext")
	w.Forget("ext")
	call, response := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil || response.Message != "" {
		t.Errorf("message %q, %v", response.Message, err)
	}
}

// RT-07, RT-20: what a status lists is taken over within the limits of what may be called; what it lists no more is gone.
func TestRestore(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	c := x.ExtensionConfig("ext")
	listed := func(name string, timeout int32, policy runtimev1.FailurePolicy) runtimev1.ExtensionHandler {
		return runtimev1.ExtensionHandler{Name: name, TimeoutSeconds: timeout, FailurePolicy: policy,
			RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: "BeforeClusterCreate"}}
	}
	c.Status.Handlers = []runtimev1.ExtensionHandler{listed("c.ext", 300, "Fail"), listed("a.ext", 0, ""), listed("b.ext", 5, "Ignore")}
	if err := w.Restore(c); err != nil {
		t.Fatal(err)
	}
	id := hooks.ID{Name: create, Version: "v1alpha1"}
	want := []Handler{
		{Name: "a", Hook: id, Timeout: defaultTimeout, Policy: "Fail"}, {Name: "b", Hook: id, Timeout: 5 * time.Second, Policy: "Ignore"},
		{Name: "c", Hook: id, Timeout: maxTimeout, Policy: "Fail"},
	}
	if diff := cmp.Diff(want, w.State("ext").Handlers); diff != "" {
		t.Errorf("restored:\n%s", diff)
	}
	c.Status.Handlers = nil
	if err := w.Restore(c); err != nil || len(w.State("ext").Handlers) != 3 {
		t.Errorf("an empty status without a discovery: %d handlers, %v; want those from before", len(w.State("ext").Handlers), err)
	}
	c.Status.Conditions = []metav1.Condition{{Type: runtimev1.ExtensionConfigDiscoveredCondition, Status: metav1.ConditionTrue}}
	if err := w.Restore(c); err != nil || len(w.State("ext").Handlers) != 0 || !w.State("ext").Discovered {
		t.Errorf("a discovery that found none: %+v, %v", w.State("ext"), err)
	}
	c.Status.Handlers = []runtimev1.ExtensionHandler{listed("a.other", 5, "Fail")}
	if err := w.Restore(c); err == nil || len(w.State("ext").Handlers) != 0 {
		t.Errorf("a handler of another extension: %+v, %v", w.State("ext"), err)
	}
}

// Stale discovery: the handlers stay, and what is wrong is known.
func TestDiscoveryFailsLater(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Respond(answered("called", 0)))
	c := x.ExtensionConfig("ext")
	s := w.mustDiscover(c)
	if got := s.Next.Sub(w.clock.Now()); got != discoveryInterval || s.Stale() {
		t.Errorf("next discovery in %s, stale %t", got, s.Stale())
	}
	x.Serve(hooks.Discovery.Path(""), func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) })
	for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		s = w.discover(c)
		if s.Problem == nil || !s.Stale() || len(s.Handlers) != 1 || s.Next.Sub(w.clock.Now()) != pause {
			t.Errorf("problem %v, stale %t, %d handlers, next in %s; want %s", s.Problem, s.Stale(), len(s.Handlers), s.Next.Sub(w.clock.Now()), pause)
		}
	}
	call, response := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil || response.Message != "called" {
		t.Errorf("a call by the old list: %q, %v", response.Message, err)
	}
}
