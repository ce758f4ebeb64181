package extensionconfig

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// RT-19: a manager that starts calls the extensions that are well at once, by what their status says, whatever became of
// others; clusters in the namespaces of one that was never discovered wait for it, those elsewhere do not.
func TestLiveStart(t *testing.T) {
	l := serve(t, namespace("ns", nil), namespace("prod", map[string]string{"stage": "prod"}))
	x := saying(t, "well", hooktest.Options{})
	hangs := hooktest.Start(t, hooktest.Options{})
	asked := make(chan struct{}, 100)
	hangs.Serve(hooks.Discovery.Path(""), func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		hooktest.Silent(w, r)
	})
	never := stored(hangs, "a-hangs")
	never.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	known, down := stored(x, "b-known"), stored(x, "c-down")
	down.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	down.Spec.NamespaceSelector = never.Spec.NamespaceSelector
	for _, c := range []*runtimev1.ExtensionConfig{never, known, down} {
		l.must(l.Create(t.Context(), c))
	}
	known.Status.Handlers = []runtimev1.ExtensionHandler{{
		Name: "say.b-known", TimeoutSeconds: 10, FailurePolicy: runtimev1.FailurePolicyFail,
		RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: "BeforeClusterCreate"},
	}}
	l.must(l.Status().Update(t.Context(), known))
	l.extensions = l.manage(l.server.Config, Settings{}, logr.Discard())
	<-asked // and no answer: the manager works all the same
	reason := func(err error) string {
		if f := fault.As(err); f != nil {
			return f.Reason
		}
		return fmt.Sprint(err)
	}
	if _, err := l.call("prod"); reason(err) != hook.ReasonNotReady {
		t.Errorf("in a namespace of the one that hangs: %v", err)
	}
	l.condition("c-down", "Discovered", "False", "nothing listens at 127.0.0.1:1; "+retryText)
	if got, err := l.call("ns"); err != nil || got != "well" {
		t.Errorf("elsewhere: %q, %v", got, err)
	}
}

// RT-20: a second manager that is read-only calls what the first one discovered, follows it, and writes nothing.
func TestLiveReadOnly(t *testing.T) {
	l := start(t, namespace("ns", nil))
	config, writes := rest.CopyConfig(l.server.Config), &atomic.Int32{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				writes.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	reader := l.manage(config, Settings{ReadOnly: true}, logr.Discard())
	x := saying(t, "hello", hooktest.Options{})
	l.must(l.Create(t.Context(), stored(x, "ext")))
	o := l.condition("ext", "Discovered", "True", "")
	l.eventually("the reader calls it", func() error {
		if got, err := l.callBy(reader, "ns"); err != nil || got != "hello" {
			return fmt.Errorf("%q, %v", got, err)
		}
		return nil
	})
	if n := len(x.Bodies(hooks.Discovery.Path(""))); n != 1 {
		t.Errorf("the extension was asked for its handlers %d times, want once, by the first manager", n)
	}
	next := saying(t, "moved", hooktest.Options{})
	o.Spec.ClientConfig.URL, o.Spec.ClientConfig.CABundle = next.URL, next.Authority.PEM
	l.must(l.Update(t.Context(), o))
	l.eventually("the reader follows", func() error {
		if got, err := l.callBy(reader, "ns"); err != nil || got != "moved" {
			return fmt.Errorf("%q, %v", got, err)
		}
		return nil
	})
	l.must(l.Delete(t.Context(), o))
	l.eventually("the reader forgets", func() error {
		if got, err := l.callBy(reader, "ns"); err != nil || got != "" {
			return fmt.Errorf("%q, %v", got, err)
		}
		return nil
	})
	if n := writes.Load(); n != 0 {
		t.Errorf("the reader made %d writes", n)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Secrets appear in no log, at the most that a manager logs, in no event and in no condition: not what else the Secret of the authority
// holds, nor settings, nor what an extension answers.
func TestLiveSecrets(t *testing.T) {
	l := serve(t, namespace("ns", nil))
	var mu sync.Mutex
	var log strings.Builder
	l.extensions = l.manage(l.server.Config, Settings{}, funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		log.WriteString(prefix + " " + args + "\n")
	}, funcr.Options{Verbosity: 7}))
	x := saying(t, "hello", hooktest.Options{})
	x.Handle(hooktest.Handler("leaks", "BeforeClusterDelete"), hooktest.Raw(`{"message":"hunter2-answer"`))
	config := stored(x, "ext")
	config.Spec.ClientConfig.CABundle = nil
	config.Spec.Settings = map[string]string{"password": "hunter2-setting"}
	config.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "ns/authority"}
	l.must(l.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "authority"}, Data: map[string][]byte{
		"ca.crt": x.Authority.PEM, "tls.key": []byte("hunter2-key"),
	}}))
	l.must(l.Create(t.Context(), config))
	l.condition("ext", "Discovered", "True", "")
	deletion := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	l.eventually("the circuit opens", func() error {
		_, err := l.extensions.CallAll(t.Context(), deletion, hook.Invocation{
			Request: &hooksv1.BeforeClusterDeleteRequest{Cluster: hook.ClusterForRequest(deletion)}, Response: &hooksv1.BeforeClusterDeleteResponse{},
		})
		if f := fault.As(err); f == nil || f.Reason != hook.ReasonCircuitOpen {
			return fmt.Errorf("%w", err)
		}
		return nil
	})
	l.condition("ext", "Answering", "False", "Calls of leaks (the response is not a BeforeClusterDeleteResponse in JSON) stopped after several failures in a row; "+
		retryText+". Until then handlers with failure policy Fail block the operations that call them, and handlers with failure policy Ignore are skipped")
	l.event("ext", "CircuitOpen")
	x.Serve(hooks.Discovery.Path(""), hooktest.Raw("hunter2-discovery"))
	o, err := l.config("ext")
	l.must(err)
	o.Spec.Settings["more"] = "hunter2-more"
	l.must(l.Update(t.Context(), o))
	l.condition("ext", "Discovered", "False", "the response is not a DiscoveryResponse in JSON; "+retryText+"; the handlers of the last discovery stay in use")
	l.event("ext", "NotDiscovered")
	list := &eventsv1.EventList{}
	l.must(l.List(t.Context(), list))
	o, err = l.config("ext")
	l.must(err)
	mu.Lock()
	said := log.String()
	mu.Unlock()
	if !strings.Contains(said, "ext") {
		t.Error("nothing was logged")
	}
	for where, text := range map[string]string{"log": said, "events": fmt.Sprintf("%+v", list.Items), "status": fmt.Sprintf("%+v", o.Status)} {
		if i := strings.Index(text, "hunter2"); i >= 0 {
			t.Errorf("a secret is in the %s: %s", where, text[max(0, i-200):min(len(text), i+50)])
		}
	}
}
