package hook

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/test/hooktest"
)

// RT-19: what one handler does is not held against the others of its extension.
func TestOneHandlerFails(t *testing.T) {
	for name, serve := range map[string]http.HandlerFunc{
		"404": http.NotFound, "500": hooktest.Status(500), "no answer": hooktest.Cut(false), "no JSON": hooktest.Raw("<html>"),
	} {
		w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
		x.Handle(hooktest.Handler("broken", "BeforeClusterCreate"), serve)
		ignored := hooktest.Handler("ignored", "BeforeClusterCreate")
		ignored.FailurePolicy = ptr.To(hooksv1.FailurePolicyIgnore)
		x.Handle(ignored, serve)
		x.Handle(hooktest.Handler("well", "BeforeClusterCreate"), hooktest.Raw(good))
		w.mustDiscover(x.ExtensionConfig("ext"))
		do := func(handler string) string {
			call, _ := creation()
			return reasonOf(w.Call(t.Context(), cluster("ns"), handler+".ext", call))
		}
		for range 10 {
			_ = do("broken")
			if reason := do("ignored"); reason != "" {
				t.Errorf("%s: a handler with policy Ignore: %s", name, reason)
			}
		}
		if reason := do("broken"); reason != ReasonCircuitOpen {
			t.Errorf("%s: the broken handler: %q", name, reason)
		}
		if reason := do("well"); reason != "" {
			t.Errorf("%s: the healthy handler: %s", name, reason)
		}
		if n, m := len(x.Bodies(pathOf("broken"))), len(x.Bodies(pathOf("ignored"))); n != 5 || m != 5 {
			t.Errorf("%s: the broken handlers were called %d and %d times, want 5", name, n, m)
		}
		s := w.State("ext")
		var failing []string
		for _, f := range s.Failing {
			failing = append(failing, f.Handler)
		}
		if diff := cmp.Diff([]string{"broken", "ignored"}, failing); diff != "" || s.Circuit.Open {
			t.Errorf("%s: the extension is %+v, handlers that are not called:\n%s", name, s.Circuit, diff)
		}
		w.circuit("1")
	}
}

// RT-19: an extension that cannot be reached is not tried for each of its handlers.
func TestNobodyIsReached(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	for _, name := range []string{"a", "b", "c"} {
		x.Handle(hooktest.Handler(name, "BeforeClusterCreate"), hooktest.Raw(good))
	}
	w.mustDiscover(x.ExtensionConfig("ext"))
	x.CloseClientConnections()
	x.Close()
	for i, handler := range []string{"a", "b", "a", "b", "a", "b", "c"} {
		call, _ := creation()
		want := reasonRefused
		if i >= 5 {
			want = ReasonCircuitOpen
		}
		if reason := reasonOf(w.Call(t.Context(), cluster("ns"), handler+".ext", call)); reason != want {
			t.Errorf("call %d, of %s: %s, want %s", i+1, handler, reason, want)
		}
	}
	if s := w.State("ext"); !s.Circuit.Open || len(s.Failing) > 0 {
		t.Errorf("got %+v", s)
	}
}

// lists makes an extension list these handlers of BeforeClusterCreate, and serve those that the function says.
func lists(x *hooktest.Extension, names ...string) {
	response := &hooksv1.DiscoveryResponse{TypeMeta: typeOf("DiscoveryResponse")}
	response.Status = hooksv1.ResponseStatusSuccess
	for _, name := range names {
		response.Handlers = append(response.Handlers, hooktest.Handler(name, "BeforeClusterCreate"))
	}
	x.Serve(discoveryPath, hooktest.Respond(response))
}

var discoveryPath = hookNamed("Discovery").Path("")

// RT-06: an extension that was replaced by one with other handlers is asked for them as soon as a call shows it.
func TestHandlersWereReplaced(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	lists(x, "old")
	c := x.ExtensionConfig("ext")
	w.mustDiscover(c)
	lists(x, "new")
	x.Serve(pathOf("new"), hooktest.Raw(good))
	woken := 0
	w.OnChange(func(string) { woken++ })
	for range 3 {
		call, _ := creation()
		if _, err := w.CallAll(t.Context(), cluster("ns"), call); reasonOf(err) != reasonHTTPStatus {
			t.Errorf("the handler that is gone: %v", err)
		}
	}
	if s := w.State("ext"); s.Next.After(w.clock.Now()) || woken != 1 {
		t.Errorf("the next discovery is due in %s, and the controller was woken %d times", s.Next.Sub(w.clock.Now()), woken)
	}
	w.mustDiscover(c)
	call, _ := creation()
	if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
		t.Errorf("after it was discovered again: %v", err)
	}
	if s := w.State("ext"); s.Next.Sub(w.clock.Now()) != discoveryInterval {
		t.Errorf("the next discovery is due in %s", s.Next.Sub(w.clock.Now()))
	}
}

// RT-06: an extension that never serves what it lists is not asked again and again, whether its list changes or not.
func TestAlwaysNotFound(t *testing.T) {
	for name, list := range map[string]func(n int) string{
		"the same list":    func(int) string { return "check" },
		"a list in motion": func(n int) string { return []string{"check", "other"}[n%2] },
	} {
		w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
		c := x.ExtensionConfig("ext")
		asked := 0
		for range 3600 { // seconds
			if s := w.State("ext"); !w.clock.Now().Before(s.Next) {
				lists(x, list(asked))
				w.mustDiscover(c)
				asked++
			}
			call, _ := creation()
			if _, err := w.CallAll(t.Context(), cluster("ns"), call); err == nil {
				t.Fatalf("%s: no error", name)
			}
			w.clock.forward(time.Second)
		}
		if asked < 10 || asked > 70 { // about one a minute
			t.Errorf("%s: asked %d times in an hour", name, asked)
		}
	}
}

// RT-30: the order of handlers stays, whatever the order in which an extension lists them.
func TestOrderOfHandlers(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	var order []string
	for _, name := range []string{"a", "b", "c"} {
		x.Serve(pathOf(name), func(rw http.ResponseWriter, r *http.Request) {
			order = append(order, name)
			hooktest.Raw(good)(rw, r)
		})
	}
	var first []runtimev1.ExtensionHandler
	for _, names := range [][]string{{"b", "c", "a"}, {"c", "b", "a"}, {"a", "b", "c"}} {
		lists(x, names...)
		handlers := StatusHandlers("ext", w.mustDiscover(x.ExtensionConfig("ext")).Handlers)
		if first == nil {
			first = handlers
		}
		if diff := cmp.Diff(first, handlers); diff != "" {
			t.Errorf("listed as %v, status.handlers:\n%s", names, diff)
		}
		order = nil
		call, _ := creation()
		if _, err := w.CallAll(t.Context(), cluster("ns"), call); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, order); diff != "" {
			t.Errorf("listed as %v, calls:\n%s", names, diff)
		}
	}
	want := `handler "Bad": the name is not a DNS label`
	for _, names := range [][]string{{"x", "Bad", "x"}, {"Bad", "x", "x"}} { // RT-15
		lists(x, names...)
		if s := w.discover(x.ExtensionConfig("ext")); s.Problem == nil || s.Problem.Message[:len(want)] != want {
			t.Errorf("listed as %v: %v", names, s.Problem)
		}
	}
}

// Followers learn when the handlers of an extension, the objects that these are called for, or the extension itself are others, and of
// nothing else.
func TestFollowers(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	lists(x, "old")
	told := 0
	w.OnHandlers(func(string) { told++ })
	c := x.ExtensionConfig("ext")
	c.Generation = 1
	for _, step := range []struct {
		reason string
		change func()
		want   int
	}{
		{"it is discovered", func() { w.mustDiscover(c) }, 1},
		{"nothing changes", func() { w.mustDiscover(c) }, 1},
		{"other handlers", func() { lists(x, "new"); w.mustDiscover(c) }, 2},
		{"another selector", func() {
			c.Generation, c.Spec.NamespaceSelector = 2, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
			w.mustDiscover(c)
		}, 3},
		{"it is removed", func() { w.Forget("ext") }, 4},
		{"it was removed before", func() { w.Forget("ext") }, 4},
	} {
		if step.change(); told != step.want {
			t.Errorf("%s: called %d times, want %d", step.reason, told, step.want)
		}
	}
}

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
	if want := "handler fail.ext: " + host + " responded with HTTP 500 Internal Server Error: correct the extension, or spec.clientConfig of ExtensionConfig ext if it refers to another server"; err == nil || err.Error() != want {
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
