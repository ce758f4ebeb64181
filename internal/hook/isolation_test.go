package hook

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// An extension that hangs has at most so many callers waiting, and none of another extension's.
func TestSlowExtensionIsBounded(t *testing.T) {
	w := newWorld(t)
	slow, quick := hooktest.Start(t, hooktest.Options{}), hooktest.Start(t, hooktest.Options{})
	let := make(chan struct{})
	var inside atomic.Int32
	hang := hooktest.Handler("hang", "BeforeClusterCreate")
	hang.TimeoutSeconds, hang.FailurePolicy = ptr.To(int32(30)), ptr.To(hooksv1.FailurePolicyIgnore)
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
	h.TimeoutSeconds = ptr.To(int32(1))
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
	catalog, err := hooks.New(append(hooks.ClusterAPI(), newer()), newerConversion())
	if err != nil {
		t.Fatal(err)
	}
	w, x := newWorld(t, func(c *Config) { c.Catalog = catalog }), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("old", "BeforeClusterCreate"), hooktest.Respond(answered("from the old one", 20)))
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

// RT-13, RT-16
func TestAggregationAcrossVersions(t *testing.T) {
	catalog, err := hooks.New(append(hooks.ClusterAPI(), newer()), newerConversion())
	if err != nil {
		t.Fatal(err)
	}
	w, x := newWorld(t, func(c *Config) { c.Catalog = catalog }), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("old", "BeforeClusterCreate"), hooktest.Respond(answered("old", 20)))
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

func (r *BeforeClusterCreateRequest) DeepCopyObject() kruntime.Object { c := *r; return &c }

func (r *BeforeClusterCreateResponse) DeepCopyObject() kruntime.Object { c := *r; return &c }

func (r *BeforeClusterCreateResponse) GetRetryAfterSeconds() int32 { return r.Wait.Seconds }

func (r *BeforeClusterCreateResponse) SetRetryAfterSeconds(s int32) { r.Wait.Seconds = s }

func newer() hooks.Hook {
	return hooks.Hook{
		ID:          hooks.ID{Name: create, Version: "v1beta1"},
		NewRequest:  func() kruntime.Object { return &BeforeClusterCreateRequest{} },
		NewResponse: func() hooks.Response { return &BeforeClusterCreateResponse{} },
	}
}

func newerConversion() hooks.Conversion {
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
