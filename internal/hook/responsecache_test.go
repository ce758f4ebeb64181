package hook

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// RT-14: an answer that blocks never becomes one that does not because its time ends while it is looked up.
func TestKeptAnswerEndsWhileItIsRead(t *testing.T) {
	begin := time.Unix(0, 0)
	readings := []time.Time{begin, begin.Add(30*time.Second - 1), begin.Add(31 * time.Second)}
	a := newResponseCache(func() time.Time {
		now := readings[0]
		if len(readings) > 1 {
			readings = readings[1:]
		}
		return now
	})
	a.put("key", answered("not yet", 30), 100, 30*time.Second)
	if r, ok := a.get("key").(hooks.RetryResponse); !ok || r.GetRetryAfterSeconds() != 1 {
		t.Errorf("a nanosecond before its end: %+v, want an answer that blocks for a second", r)
	}
	if r := a.get("key"); r != nil {
		t.Errorf("after its end: %+v", r)
	}
}

// RT-14
func TestAnswersAreKept(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("wait", "BeforeClusterCreate"), hooktest.Respond(answered("not yet", 30)))
	path := pathOf("wait")
	w.mustDiscover(x.ExtensionConfig("ext"))
	ask := func(input string) *hooksv1.BeforeClusterCreateResponse {
		t.Helper()
		call, response := creation()
		call.CacheKey = input
		if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
			t.Fatal(err)
		}
		return response
	}
	steps := []struct {
		reason  string
		forward time.Duration
		input   string
		retry   int32
		calls   int
	}{
		{reason: "the first time", input: "v1", retry: 30, calls: 1},
		{reason: "the same question, some time later: what is left of the time", forward: 10500 * time.Millisecond, input: "v1", retry: 20, calls: 1},
		{reason: "another question", input: "v2", retry: 30, calls: 2},
		{reason: "the first answer is still good", input: "v1", retry: 20, calls: 2},
		{reason: "its time is over", forward: 20 * time.Second, input: "v1", retry: 30, calls: 3},
	}
	for _, s := range steps {
		w.clock.forward(s.forward)
		response := ask(s.input)
		if got := len(x.Bodies(path)); response.RetryAfterSeconds != s.retry || response.Message != "not yet" || got != s.calls {
			t.Errorf("%s: retryAfterSeconds %d after %d calls, want %d after %d", s.reason, response.RetryAfterSeconds, got, s.retry, s.calls)
		}
	}
	x.Serve(path, hooktest.Respond(answered("go on", 0)))
	w.clock.forward(time.Minute)
	ask("v1")
	if ask("v1"); len(x.Bodies(path)) != 5 {
		t.Errorf("an answer that blocks nothing was kept: %d calls, want 5", len(x.Bodies(path)))
	}
	changed := x.ExtensionConfig("ext")
	changed.Generation++
	x.Serve(path, hooktest.Respond(answered("not yet", 3600)))
	ask("v3")
	w.mustDiscover(changed)
	if ask("v3"); len(x.Bodies(path)) != 7 {
		t.Errorf("an answer outlived a change of its ExtensionConfig: %d calls, want 7", len(x.Bodies(path)))
	}
}

// RT-06, RT-14: a request to discover an extension once more is answered once, and answers from before it are not used.
func TestRefresh(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("wait", "BeforeClusterCreate"), hooktest.Respond(answered("not yet", 3600)))
	path := pathOf("wait")
	c := x.ExtensionConfig("ext")
	w.mustDiscover(c)
	since := time.Time{}
	ask := func(reason string, calls int) {
		t.Helper()
		call, _ := creation()
		call.CacheKey = "same"
		called, err := w.CallAll(t.Context(), cluster("ns"), call)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(x.Bodies(path)); n != calls {
			t.Errorf("%s: %d calls, want %d", reason, n, calls)
		}
		if since.IsZero() {
			since = called.Blocking[0].Since
		}
		if !called.Blocking[0].Since.Equal(since) {
			t.Errorf("%s: it blocks since %s, not since %s", reason, called.Blocking[0].Since, since)
		}
	}
	ask("the first time", 1)
	w.clock.forward(time.Minute)
	w.mustDiscover(c)
	ask("a discovery that was due", 1)
	c.Annotations = map[string]string{RefreshAnnotation: ""}
	if got := w.State("ext").Refreshed; got == RefreshRequest(c) {
		t.Errorf("the request is not answered yet: %q", got)
	}
	if got := w.mustDiscover(c).Refreshed; got != RefreshRequest(c) {
		t.Errorf("the request is answered, the state says %q", got)
	}
	ask("the request", 2)
	w.mustDiscover(c)
	ask("the same request, discovered for another reason", 2)
	w.Announce(c)
	ask("the annotation is still there", 2)
	c.Annotations = nil
	if w.Announce(c); w.State("ext").Refreshed != "" {
		t.Error("the request is over, and remembered: the next of the same value would not be answered")
	}
	c.Annotations = map[string]string{RefreshAnnotation: ""}
	w.mustDiscover(c)
	ask("another request of the same value", 3)
}

func TestReuse(t *testing.T) { // RT-14
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	response := &hooksv1.DiscoverVariablesResponse{TypeMeta: typeOf("DiscoverVariablesResponse")}
	response.Status = hooksv1.ResponseStatusSuccess
	response.Variables = []clusterv1.ClusterClassVariable{{Name: "size"}}
	x.Handle(hooktest.Handler("vars", "DiscoverVariables"), hooktest.Respond(response))
	w.mustDiscover(x.ExtensionConfig("ext"))
	for range 3 {
		got := &hooksv1.DiscoverVariablesResponse{}
		call := Invocation{Request: &hooksv1.DiscoverVariablesRequest{}, Response: got, CacheTTL: 48 * time.Hour}
		if err := w.Call(t.Context(), cluster("ns"), "vars.ext", call); err != nil || len(got.Variables) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		w.clock.forward(11 * time.Hour)
	}
	path := hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: "DiscoverVariables"}, Version: "v1alpha1"}.Path("vars")
	if n := len(x.Bodies(path)); n != 1 {
		t.Errorf("%d calls in 22 h, want 1", n)
	}
	call := Invocation{Request: &hooksv1.DiscoverVariablesRequest{}, Response: &hooksv1.DiscoverVariablesResponse{}, CacheTTL: 48 * time.Hour}
	if err := w.Call(t.Context(), cluster("ns"), "vars.ext", call); err != nil || len(x.Bodies(path)) != 2 {
		t.Errorf("after 33 h: %d calls, %v; answers are kept for 24 h at most", len(x.Bodies(path)), err)
	}
}

func TestKeptAnswersAreBounded(t *testing.T) {
	c := &clock{now: time.Unix(0, 0)}
	a := newResponseCache(c.Now)
	for i := range maxCacheEntries + 100 {
		a.put(fmt.Sprint(i), answered("", 0), 1, time.Hour)
	}
	if a.lru.Len() != maxCacheEntries {
		t.Errorf("%d responses are cached, want %d", a.lru.Len(), maxCacheEntries)
	}
	for i := range 20 {
		a.put(fmt.Sprint("big", i), answered("", 0), maxCacheBytes/8-10, time.Hour)
	}
	if a.bytes > maxCacheBytes || a.bytes < maxCacheBytes/2 {
		t.Errorf("%d bytes are cached, at most %d", a.bytes, maxCacheBytes)
	}
	if a.put("too big", answered("", 0), maxCacheBytes/8, time.Hour); a.get("too big") != nil {
		t.Error("a response of an eighth of the cache is cached")
	}
	for a.lru.Len() > 0 {
		a.lru.RemoveOldest()
	}
	if a.bytes != 0 {
		t.Errorf("empty, and still %d bytes", a.bytes)
	}
}

// LH-17: who blocks, why, and since when.
func TestBlocking(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("a", "BeforeClusterCreate"), hooktest.Respond(answered("", 0)))
	x.Handle(hooktest.Handler("b", "BeforeClusterCreate"), hooktest.Respond(answered("no room", 30)))
	w.mustDiscover(x.ExtensionConfig("ext"))
	began := w.clock.Now()
	check := func(reason string, want ...Blocking) {
		t.Helper()
		call, _ := creation()
		got, err := w.CallAll(t.Context(), cluster("ns"), call)
		if diff := cmp.Diff(CallAllResult{Handlers: []string{"a.ext", "b.ext"}, Blocking: want}, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", reason, err, diff)
		}
	}
	check("the first time", Blocking{"b.ext", "no room", began, 30 * time.Second})
	w.clock.forward(10 * time.Second)
	check("a kept answer", Blocking{"b.ext", "no room", began, 20 * time.Second})
	w.clock.forward(10 * time.Minute)
	x.Serve(pathOf("b"), hooktest.Respond(answered("still no room", 5)))
	check("much later", Blocking{"b.ext", "still no room", began, 5 * time.Second})
	w.clock.forward(10 * time.Second)
	x.Serve(pathOf("b"), hooktest.Respond(answered("", 0)))
	check("it lets go")
	x.Serve(pathOf("b"), hooktest.Respond(answered("again", 5)))
	check("it blocks again", Blocking{"b.ext", "again", w.clock.Now(), 5 * time.Second})
}

// RT-14: a request whose answer is kept is not made at all: those of topologies are megabytes.
func TestKeptAnswersNeedNoRequest(t *testing.T) {
	encoded, step := 0, newerConversion()
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
	x.Handle(hooktest.Handler("old", "BeforeClusterCreate"), hooktest.Respond(answered("wait", 20)))
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
