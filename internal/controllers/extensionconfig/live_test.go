package extensionconfig

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit"
	"github.com/slipwayhq/slipway/test/testkit/apiserver"
)

const patience = 2 * time.Minute

// live is an API server with a manager.
type live struct {
	t *testing.T
	client.Client
	server     *apiserver.Server
	extensions *hook.Extensions
}

// start runs an API server with the objects, and a manager.
func start(t *testing.T, objects ...client.Object) live {
	t.Helper()
	l := serve(t, objects...)
	l.extensions = l.manage(l.server.Config, Settings{}, logr.Discard())
	return l
}

// serve runs an API server with the objects, and no manager yet.
func serve(t *testing.T, objects ...client.Object) live {
	t.Helper()
	srv := apiserver.Start(t, apiserver.Options{Objects: append(objects, apiserver.CRDs(t, "ExtensionConfig")...)})
	return live{t: t, server: srv, Client: srv.Client(t, liveScheme(t))}
}

func liveScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := newScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// manage runs a manager until the test ends.
func (l live) manage(config *rest.Config, settings Settings, log logr.Logger) *hook.Extensions {
	t := l.t
	t.Helper()
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: liveScheme(t), Logger: log, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Cache:      cache.Options{DefaultTransform: kube.PruneManagedFields},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // one process, several managers
	})
	if err != nil {
		t.Fatal(err)
	}
	extensions, err := hook.New(hook.Config{NamespaceLabels: hook.NamespaceLabels(mgr.GetClient())})
	if err != nil {
		t.Fatal(err)
	}
	if err := Add(reconciler.Setup{Manager: mgr, Concurrency: 2}, extensions, settings); err != nil {
		t.Fatal(err)
	}
	testkit.RunBackground(t, mgr.Start)
	return extensions
}

func (l live) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// eventually polls until f returns no error.
func (l live) eventually(what string, f func() error) {
	l.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err = f(); err == nil {
			return
		}
		select {
		case <-l.t.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.t.Fatalf("%s: %v", what, err)
}

func (l live) config(name string) (*runtimev1.ExtensionConfig, error) {
	o := &runtimev1.ExtensionConfig{}
	return o, l.Get(l.t.Context(), client.ObjectKey{Name: name}, o)
}

// condition waits until a condition has the status and the message.
func (l live) condition(name, conditionType, status, message string) *runtimev1.ExtensionConfig {
	l.t.Helper()
	var o *runtimev1.ExtensionConfig
	l.eventually(name+" "+conditionType+" is "+status, func() (err error) {
		if o, err = l.config(name); err != nil {
			return err
		}
		c := condition.Set(o.Status.Conditions).Get(conditionType)
		if c == nil || string(c.Status) != status || c.Message != message {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	return o
}

// call calls all handlers for a Cluster in the namespace.
func (l live) call(namespace string) (string, error) { return l.callBy(l.extensions, namespace) }

func (l live) callBy(extensions *hook.Extensions, namespace string) (string, error) {
	o := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
	response := &hooksv1.BeforeClusterCreateResponse{}
	_, err := extensions.CallAll(l.t.Context(), o, hook.Invocation{Request: &hooksv1.BeforeClusterCreateRequest{Cluster: hook.ClusterForRequest(o)}, Response: response})
	return response.Message, err
}

func namespace(name string, labels map[string]string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// saying serves an extension whose handler answers with a message.
func saying(t *testing.T, message string, o hooktest.Options) *hooktest.Extension {
	t.Helper()
	x := hooktest.Start(t, o)
	response := &hooksv1.BeforeClusterCreateResponse{}
	response.APIVersion, response.Kind = "hooks.runtime.cluster.x-k8s.io/v1alpha1", "BeforeClusterCreateResponse"
	response.Status, response.Message = hooksv1.ResponseStatusSuccess, message
	x.Handle(hooktest.Handler("say", "BeforeClusterCreate"), hooktest.Respond(response))
	return x
}

func stored(x *hooktest.Extension, name string) *runtimev1.ExtensionConfig {
	c := x.ExtensionConfig(name)
	c.ObjectMeta = metav1.ObjectMeta{Name: name}
	return c
}

// TestLive is the life of extensions on a real API server: RT-03, RT-05, RT-06, RT-19, RT-21.
func TestLive(t *testing.T) {
	l := start(t, namespace("ns", nil), namespace("prod", map[string]string{"stage": "prod"}))
	var certificate atomic.Pointer[tls.Certificate]
	x := saying(t, "injected", hooktest.Options{TLS: func(c *tls.Config) {
		certificate.Store(&c.Certificates[0])
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return &tls.Config{Certificates: []tls.Certificate{*certificate.Load()}}, nil
		}
	}})
	config := stored(x, "ext")
	config.Spec.ClientConfig.CABundle = nil
	config.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	config.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "ns/authority"}
	l.must(l.Create(t.Context(), config))

	l.condition("ext", "Discovered", "False", "Secret ns/authority, which caBundle is taken from, does not exist; create it with key ca.crt")
	if got, err := l.call("prod"); err == nil { // RT-31
		t.Errorf("an extension that was not discovered yet was passed over: %q", got)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "authority"}, Data: map[string][]byte{"ca.crt": x.Authority.PEM}}
	l.must(l.Create(t.Context(), secret)) // the watch of the Secret wakes the controller
	o := l.condition("ext", "Discovered", "True", "")
	if len(o.Status.Handlers) != 1 || o.Status.Handlers[0].Name != "say.ext" || o.Status.Handlers[0].TimeoutSeconds != 10 {
		t.Errorf("status.handlers: %+v", o.Status.Handlers)
	}
	for ns, want := range map[string]string{"prod": "injected", "ns": ""} {
		if got, err := l.call(ns); err != nil || got != want {
			t.Errorf("namespace %s: %q, %v; want %q", ns, got, err, want)
		}
	}

	next := hooktest.NewAuthority(t)
	issued := next.Issue(hooktest.Certificate{})
	certificate.Store(&issued)
	x.CloseClientConnections()
	if _, err := l.call("prod"); err == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
	secret.Data["ca.crt"] = next.PEM
	l.must(l.Update(t.Context(), secret))
	l.eventually("called with the new authority", func() error {
		_, err := l.call("prod")
		return err
	})

	other := stored(saying(t, "other", hooktest.Options{}), "z-other")
	other.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	other.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "none"}}
	l.must(l.Create(t.Context(), other))
	l.condition("z-other", "Paused", "True", "the object has the cluster.x-k8s.io/paused annotation")
	o = l.condition("ext", "Discovered", "True", "")
	o.Annotations[clusterv1.PausedAnnotation] = ""
	l.must(l.Update(t.Context(), o))
	o = l.condition("ext", "Paused", "True", "the object has the cluster.x-k8s.io/paused annotation")
	if got, err := l.call("prod"); err != nil || got != "injected" {
		t.Errorf("paused: %q, %v", got, err)
	}
	l.must(l.Delete(t.Context(), o)) // paused as it is
	l.eventually("forgotten", func() error {
		if got, err := l.call("prod"); err != nil || got != "" {
			return fmt.Errorf("%q, %v", got, err)
		}
		return nil
	})
}

// TestLiveFaults: extensions that are down, lie, and come back, beside one that is well: RT-15, RT-19.
func TestLiveFaults(t *testing.T) {
	l := start(t, namespace("ns", nil), namespace("prod", map[string]string{"stage": "prod"}))
	well, moody := saying(t, "well", hooktest.Options{}), saying(t, "moody", hooktest.Options{})
	twice := hooktest.Start(t, hooktest.Options{})
	for range 2 {
		twice.Handle(hooktest.Handler("same", "BeforeClusterCreate"), nil)
	}
	down, wrong := stored(well, "a-down"), stored(twice, "b-wrong")
	down.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	for _, c := range []*runtimev1.ExtensionConfig{down, wrong} {
		c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	}
	many := hooktest.Start(t, hooktest.Options{})
	for i := range 500 {
		many.Handle(hooktest.Handler(fmt.Sprintf("h%d", i), "BeforeClusterUpgrade"), nil)
	}
	for _, c := range []client.Object{
		down, wrong, stored(well, "c-well"), stored(moody, "d-moody"), stored(many, "e-many"),
	} {
		l.must(l.Create(t.Context(), c))
	}
	l.condition("a-down", "Discovered", "False", "nothing listens at 127.0.0.1:1; "+retryText)
	l.condition("b-wrong", "Discovered", "False", `handler "same": the name is not unique; `+retryText)
	if o := l.condition("e-many", "Discovered", "True", ""); len(o.Status.Handlers) != 500 {
		t.Errorf("%d of 500 handlers are in the status", len(o.Status.Handlers))
	}
	l.condition("c-well", "Discovered", "True", "")
	l.condition("d-moody", "Answering", "True", "")
	if got, err := l.call("ns"); err != nil || got != "well, moody" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := l.call("prod") // RT-31
	if f := fault.As(err); f == nil || f.Reason != "NotDiscovered" {
		t.Errorf("in a namespace of those that were never discovered: %v", err)
	}

	at, authority := moody.Listener.Addr().String(), moody.Authority
	moody.CloseClientConnections()
	moody.Close()
	l.eventually("the circuit opens", func() error {
		if _, err := l.call("ns"); fault.As(err) == nil || fault.As(err).Reason != hook.ReasonCircuitOpen {
			return fmt.Errorf("%w", err)
		}
		return nil
	})
	cause := "nothing listens at " + at
	l.condition("d-moody", "Answering", "False", "Calls stopped after several failures in a row: "+cause+"; "+
		retryText+". Until then handlers with failure policy Fail block the operations that call them, and handlers with failure policy Ignore are skipped")
	l.condition("d-moody", "Discovered", "False", cause+"; "+retryText+"; the handlers of the last discovery stay in use")
	l.event("d-moody", "CircuitOpen")

	back := hooktest.Start(t, hooktest.Options{At: at, Authority: authority})
	back.Handle(hooktest.Handler("say", "BeforeClusterDelete"), nil)
	l.condition("d-moody", "Answering", "True", "")
	o := l.condition("d-moody", "Discovered", "True", "")
	if o.Status.Handlers[0].RequestHook.Hook != "BeforeClusterDelete" {
		t.Errorf("handlers after it came back: %+v", o.Status.Handlers)
	}
	l.event("d-moody", "CircuitClosed")
}

// event waits for an event about an extension.
func (l live) event(name, reason string) {
	l.t.Helper()
	l.eventually("event "+reason, func() error {
		list := &eventsv1.EventList{}
		if err := l.List(l.t.Context(), list); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Name == name && e.Reason == reason }) {
			return fmt.Errorf("not among %d events", len(list.Items))
		}
		return nil
	})
}

// TestLiveRefresh: an annotation requests a discovery, and goes when the status says what was found, whether handlers changed, did
// not, or could not be had: RT-06.
func TestLiveRefresh(t *testing.T) {
	l := start(t, namespace("ns", nil))
	x := saying(t, "hello", hooktest.Options{})
	l.must(l.Create(t.Context(), stored(x, "ext")))
	l.condition("ext", "Discovered", "True", "")
	refresh := func(value string) *runtimev1.ExtensionConfig {
		t.Helper()
		o, err := l.config("ext")
		l.must(err)
		before := o.DeepCopy()
		o.Annotations = map[string]string{hook.RefreshAnnotation: value, "kept": "yes"}
		l.must(l.Patch(t.Context(), o, client.MergeFrom(before)))
		l.eventually("the request is answered", func() error {
			if o, err = l.config("ext"); err != nil {
				return err
			}
			if _, there := o.Annotations[hook.RefreshAnnotation]; there || o.Annotations["kept"] != "yes" {
				return fmt.Errorf("annotations: %v", o.Annotations)
			}
			return nil
		})
		return o
	}
	x.Handle(hooktest.Handler("bye", "BeforeClusterDelete"), nil)
	if o := refresh("1"); len(o.Status.Handlers) != 2 || o.Status.Handlers[0].Name != "bye.ext" {
		t.Errorf("a new handler is in the status before the annotation goes: %+v", o.Status.Handlers)
	}
	path := hooks.Discovery.Path("")
	asked := len(x.Bodies(path))
	refresh("1")
	if n := len(x.Bodies(path)); n != asked+1 {
		t.Errorf("a request of the same value: %d discoveries, want 1", n-asked)
	}
	at := x.Listener.Addr().String()
	x.CloseClientConnections()
	x.Close()
	o := refresh("")
	if c := condition.Set(o.Status.Conditions).Get("Discovered"); c.Status != "False" || !strings.Contains(c.Message, "nothing listens at "+at) {
		t.Errorf("the condition does not say that it failed when the annotation goes: %+v", c)
	}
}
