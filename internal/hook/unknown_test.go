package hook

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// listedIn is a handler as a status lists it.
func listedIn(name, version, hook string, policy runtimev1.FailurePolicy) runtimev1.ExtensionHandler {
	return runtimev1.ExtensionHandler{Name: name, TimeoutSeconds: 10, FailurePolicy: policy,
		RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Group + "/" + version, Hook: hook}}
}

// all calls all handlers of BeforeClusterCreate for a Cluster, and returns the reason and the text of the error.
func (w *world) all(namespace string) (reason, text string) {
	w.t.Helper()
	call, _ := creation()
	_, err := w.CallAll(w.t.Context(), cluster(namespace), call)
	if err == nil {
		return "", ""
	}
	return reasonOf(err), err.Error()
}

// RT-31: a handler of a hook, or of a version of one, that this manager does not know holds back what it would be called
// for, is named, and stays in the status; its failure policy and the state of its extension change nothing about it.
func TestUnknownHandlers(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(good))
	c := x.ExtensionConfig("ext")
	c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	c.Status.Handlers = []runtimev1.ExtensionHandler{
		listedIn("check.ext", "v1alpha1", "BeforeClusterCreate", "Fail"), listedIn("guard.ext", "v9", "BeforeClusterCreate", "Ignore"),
		listedIn("later.ext", "v7", "NotKnownHere", "Fail"),
	}
	if err := w.Restore(c); err != nil {
		t.Fatal(err)
	}
	const want = "handler guard.ext serves BeforeClusterCreate of hooks.runtime.cluster.x-k8s.io/v9, which this version of Slipway " +
		"does not support; update the extension or delete its ExtensionConfig"
	blocks := func(when string) {
		t.Helper()
		if reason, text := w.all("prod"); reason != reasonUnknownHook || text != want {
			t.Errorf("%s: got %s: %s\nwant %s", when, reason, text, want)
		}
	}
	blocks("restored")
	if reason, text := w.all("ns"); reason != "" {
		t.Errorf("a namespace that the extension is not for: %s", text)
	}
	call, _ := creation()
	if err := w.Call(t.Context(), cluster("prod"), "guard.ext", call); reasonOf(err) != reasonUnknownHook {
		t.Errorf("called by name: %v", err)
	}
	if err := w.Call(t.Context(), cluster("prod"), "check.ext", call); err != nil {
		t.Errorf("another handler called by name: %v", err)
	}
	deletion := Invocation{Request: &hooksv1.BeforeClusterDeleteRequest{}, Response: &hooksv1.BeforeClusterDeleteResponse{}}
	if _, err := w.CallAll(t.Context(), cluster("prod"), deletion); err != nil {
		t.Errorf("another hook: %v", err)
	}
	names, err := w.Handlers(t.Context(), create, cluster("prod"))
	if diff := cmp.Diff([]string{"check.ext", "guard.ext"}, names); diff != "" || err != nil {
		t.Errorf("handlers of the hook: %v\n%s", err, diff)
	}

	x.Handle(hooktest.Handler("guard", "BeforeClusterBirth"), nil)
	s := w.discover(c)
	if s.Problem == nil || s.Problem.Message != `handler "guard": there is no hook BeforeClusterBirth in hooks.runtime.cluster.x-k8s.io/v1alpha1` {
		t.Errorf("a discovery that lists one: %v", s.Problem)
	}
	blocks("after a discovery that failed")
	if diff := cmp.Diff(c.Status.Handlers, StatusHandlers("ext", s.Handlers)); diff != "" {
		t.Errorf("status.handlers:\n%s", diff)
	}
	var unknown []string
	for _, h := range s.Unknown {
		unknown = append(unknown, h.Name)
	}
	if !slices.Equal(unknown, []string{"guard", "later"}) {
		t.Errorf("unknown are %v", unknown)
	}
}

// RT-19, RT-31: an extension that was never discovered holds back what it may have handlers for, in its namespaces, and
// says why; nothing is asked over the network for that.
func TestNeverDiscovered(t *testing.T) {
	down := runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "new", UID: "u1", Generation: 1}}
	down.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	down.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	x := hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Raw(good))
	known := x.ExtensionConfig("known")
	known.Status.Handlers = []runtimev1.ExtensionHandler{listedIn("check.known", "v1alpha1", "BeforeClusterCreate", "")}
	w := newWorld(t)
	w.primed = false
	expect := func(when, namespace, reason, text string) {
		t.Helper()
		if gotReason, got := w.all(namespace); gotReason != reason || text != "" && got != text {
			t.Errorf("%s: got %q: %s\nwant %q: %s", when, gotReason, got, reason, text)
		}
	}
	expect("before the extensions are listed", "ns", ReasonNotReady, "")
	w.Announce(&down)
	if err := w.Restore(known); err != nil {
		t.Fatal(err)
	}
	w.Prime()
	expect("a namespace that the new extension is not for", "ns", "", "")
	if n := len(x.Bodies(pathOf("check"))); n != 1 {
		t.Errorf("the handler known from the status was called %d times, want 1", n)
	}
	expect("at first", "prod", ReasonNotReady, "waiting for the discovery of ExtensionConfig new")
	w.clock.forward(grace)
	expect("later, when nobody tried", "prod", reasonNotDiscovered,
		"ExtensionConfig new may have handlers for this hook, but its discovery never succeeded; see its conditions, or delete it")
	if n := len(x.Bodies(discoveryPath)); n != 0 {
		t.Errorf("the network was asked %d times", n)
	}
	w.discover(&down)
	const text = "ExtensionConfig new may have handlers for this hook, but its discovery never succeeded: nothing listens at 127.0.0.1:1; correct or delete it"
	expect("once it was tried", "prod", reasonNotDiscovered, text)
	call, _ := creation()
	if err := w.Call(t.Context(), cluster("prod"), "check.new", call); reasonOf(err) != reasonNotDiscovered || err.Error() != text {
		t.Errorf("by name: %v", err)
	}
	down.Spec.ClientConfig = x.ExtensionConfig("new").Spec.ClientConfig
	down.Generation++
	w.mustDiscover(&down)
	expect("discovered", "prod", "", "")
	other := down.DeepCopy()
	other.Name, other.UID = "other", "u2"
	w.Announce(other)
	expect("another one", "prod", ReasonNotReady, "")
	w.Forget("other")
	expect("another one, deleted", "prod", "", "")
}

// RT-31: after a restart, an extension whose spec cannot be used holds back what its handlers would be called for, whatever
// their failure policy; until the restart the last spec that could be used stays.
func TestSpecThatCannotBeUsed(t *testing.T) {
	x := hooktest.Start(t, hooktest.Options{})
	h := hooktest.Handler("check", "BeforeClusterCreate")
	h.FailurePolicy = ptr.To(hooksv1.FailurePolicyIgnore)
	x.Handle(h, hooktest.Raw(good))
	for name, tt := range map[string]struct {
		change func(*runtimev1.ExtensionConfigSpec)
		want   string
	}{
		"caBundle": {
			change: func(s *runtimev1.ExtensionConfigSpec) { s.ClientConfig.CABundle = []byte("x") },
			want:   "spec.clientConfig.caBundle holds no certificate in PEM form; correct it or let it be injected",
		},
		"url": {
			change: func(s *runtimev1.ExtensionConfigSpec) { s.ClientConfig.URL = "http://x" },
			want:   "spec.clientConfig.url is not the URL of an HTTPS server; correct it",
		},
		"selector": {
			change: func(s *runtimev1.ExtensionConfigSpec) {
				s.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "stage", Operator: "Like"}}}
			},
			want: `spec.namespaceSelector cannot be used: "Like" is not a valid label selector operator`,
		},
	} {
		running, c := newWorld(t), x.ExtensionConfig("ext")
		c.Status.Handlers = StatusHandlers("ext", running.mustDiscover(c).Handlers)
		tt.change(&c.Spec)
		c.Generation++
		if s := running.discover(c); s.Problem == nil || s.Problem.Message != tt.want {
			t.Errorf("%s: %v", name, s.Problem)
		}
		if _, text := running.all("ns"); text != "" {
			t.Errorf("%s, still running: %s", name, text)
		}
		started := newWorld(t)
		if err := started.Restore(c); err == nil {
			t.Errorf("%s: no problem", name)
		}
		if _, text := started.all("ns"); text != "handler check.ext: "+tt.want {
			t.Errorf("%s, started again: %q", name, text)
		}
		c.Status.Handlers = nil
		started = newWorld(t)
		started.Announce(c)
		want := "ExtensionConfig ext may have handlers for this hook, but its discovery never succeeded: " + tt.want + "; correct or delete it"
		if _, text := started.all("ns"); text != want {
			t.Errorf("%s, never discovered: %q", name, text)
		}
	}
}
