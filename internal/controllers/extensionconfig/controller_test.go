package extensionconfig

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
	"github.com/slipwayhq/slipway/test/testkit"
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, runtimev1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// followed remembers which Secrets are watched.
type followed map[string]client.ObjectKey

func (f followed) follow(extension string, secret client.ObjectKey) { f[extension] = secret }

func newExtensions(t *testing.T) *hook.Extensions {
	t.Helper()
	e, err := hook.New(hook.Config{
		Random:          func() float64 { return 0.5 },
		NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newController(c client.WithWatch, e *hook.Extensions, settings Settings) (*controller, followed) {
	f := followed{}
	ctl := &controller{client: c, extensions: e, catalog: e.Catalog(), secrets: f, settings: settings, now: time.Now}
	r := &reconciler.Reconciler[*runtimev1.ExtensionConfig, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name)}
	ctl.writer, ctl.driver = r.Writer, r
	return ctl, f
}

// handles serves an extension with one handler.
func handles(t *testing.T) *hooktest.Extension {
	t.Helper()
	x := hooktest.Start(t, hooktest.Options{})
	response := &hooksv1.BeforeClusterCreateResponse{}
	response.APIVersion, response.Kind, response.Status = "hooks.runtime.cluster.x-k8s.io/v1alpha1", "BeforeClusterCreateResponse", "Success"
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Respond(response))
	return x
}

func injected(x *hooktest.Extension) (*runtimev1.ExtensionConfig, *corev1.Secret) {
	c := x.ExtensionConfig("ext")
	c.UID, c.Spec.ClientConfig.CABundle = "u", nil
	c.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "ns/authority"}
	return c, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "authority"}, Data: map[string][]byte{"ca.crt": x.Authority.PEM}}
}

func get(t *testing.T, c client.Client) *runtimev1.ExtensionConfig {
	t.Helper()
	o := &runtimev1.ExtensionConfig{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "ext"}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

// pass reconciles until a pass writes nothing.
func pass(t *testing.T, c client.Client, ctl *controller) {
	t.Helper()
	for range 20 {
		before := get(t, c).ResourceVersion
		_, err := ctl.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "ext"}})
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict {
			t.Fatal(err)
		}
		if err == nil && get(t, c).ResourceVersion == before {
			return
		}
	}
	t.Fatal("does not settle")
}

func called(t *testing.T, e *hook.Extensions) error {
	t.Helper()
	e.Prime()
	o := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	return e.Call(t.Context(), o, "check.ext", hook.Invocation{
		Request: &hooksv1.BeforeClusterCreateRequest{Cluster: hook.ClusterForRequest(o)}, Response: &hooksv1.BeforeClusterCreateResponse{},
	})
}

// RT-05, RT-06: every write fails once, and the extension can be called in the end.
func TestEveryWriteFailsOnce(t *testing.T) {
	x := handles(t)
	build := func() *fake.ClientBuilder {
		config, secret := injected(x)
		return fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(config, secret).WithStatusSubresource(&runtimev1.ExtensionConfig{})
	}
	testkit.FailEachWrite(t, build, func(t *testing.T, c client.WithWatch) {
		e := newExtensions(t)
		ctl, watched := newController(c, e, Settings{})
		pass(t, c, ctl)
		o := get(t, c)
		if string(o.Spec.ClientConfig.CABundle) != string(x.Authority.PEM) || len(o.Status.Handlers) != 1 || o.Status.Handlers[0].Name != "check.ext" {
			t.Errorf("caBundle of %d bytes, handlers %+v", len(o.Spec.ClientConfig.CABundle), o.Status.Handlers)
		}
		if err := called(t, e); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(followed{"ext": {Namespace: "ns", Name: "authority"}}, watched); diff != "" {
			t.Errorf("watched Secrets:\n%s", diff)
		}
	})
}

// RT-05: what is wrong with the Secret is said, and what was injected before stays.
func TestSecretNotUsable(t *testing.T) {
	tests := map[string]struct {
		annotation string
		secret     map[string][]byte
		want       string
	}{
		"gone":      {annotation: "ns/authority", want: "Secret ns/authority, which caBundle is taken from, does not exist; create it with key ca.crt"},
		"no key":    {annotation: "ns/authority", secret: map[string][]byte{"tls.crt": []byte("x")}, want: "Secret ns/authority, which caBundle is taken from, has no key ca.crt; add it"},
		"empty key": {annotation: "ns/authority", secret: map[string][]byte{"ca.crt": []byte("\n")}, want: "Secret ns/authority, which caBundle is taken from, has no key ca.crt; add it"},
		"no name": {
			annotation: "authority",
			want:       "annotation runtime.cluster.x-k8s.io/inject-ca-from-secret is not <namespace>/<name> of a Secret; correct it",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			x := handles(t)
			config, secret := injected(x)
			config.Annotations[runtimev1.InjectCAFromSecretAnnotation] = tt.annotation
			config.Spec.ClientConfig.CABundle = []byte("kept")
			objects := []client.Object{config}
			if secret.Data = tt.secret; tt.secret != nil {
				objects = append(objects, secret)
			}
			c := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objects...).WithStatusSubresource(&runtimev1.ExtensionConfig{}).WithReturnManagedFields().Build()
			ctl, _ := newController(c, newExtensions(t), Settings{})
			pass(t, c, ctl)
			o := get(t, c)
			if got := o.Status.Conditions[0].Message; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if string(o.Spec.ClientConfig.CABundle) != "kept" {
				t.Errorf("caBundle is %q", o.Spec.ClientConfig.CABundle)
			}
		})
	}
}

// RT-21: paused extensions stay known, are left alone, and are forgotten when they are deleted.
func TestPausedAndDeleted(t *testing.T) {
	x := handles(t)
	config := x.ExtensionConfig("ext")
	config.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	config.Status.Handlers = []runtimev1.ExtensionHandler{{
		Name: "check.ext", RequestHook: runtimev1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
	}}
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(config).WithStatusSubresource(config).WithReturnManagedFields().Build()
	e := newExtensions(t)
	ctl, watched := newController(c, e, Settings{})
	pass(t, c, ctl)
	if err := called(t, e); err != nil {
		t.Errorf("paused: %v", err)
	}
	if n := len(x.Bodies("/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery")); n != 0 {
		t.Errorf("a paused extension was asked %d times", n)
	}
	if err := c.Delete(t.Context(), get(t, c)); err != nil {
		t.Fatal(err)
	}
	if _, err := ctl.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "ext"}}); err != nil {
		t.Fatal(err)
	}
	if f := fault.As(called(t, e)); f == nil || f.Reason != "NotRegistered" {
		t.Errorf("deleted: %v", f)
	}
	if diff := cmp.Diff(followed{"ext": {}}, watched); diff != "" {
		t.Errorf("watched Secrets:\n%s", diff)
	}
}

// RT-20: a manager that is read-only takes over what another one discovered for the current spec, and nothing else.
func TestReadOnly(t *testing.T) {
	x := handles(t)
	discovered := func(status metav1.ConditionStatus, generation int64) []metav1.Condition {
		return []metav1.Condition{{Type: "Discovered", Status: status, Reason: "R", ObservedGeneration: generation, LastTransitionTime: metav1.Now()}}
	}
	tests := map[string]struct {
		change func(*runtimev1.ExtensionConfig)
		want   string // reason of the error of a call
	}{
		"discovered by another":  {},
		"not discovered":         {change: func(c *runtimev1.ExtensionConfig) { c.Status.Conditions = nil }, want: hook.ReasonNotReady},
		"discovery failed":       {change: func(c *runtimev1.ExtensionConfig) { c.Status.Conditions = discovered("False", 1) }, want: hook.ReasonNotReady},
		"for an earlier spec":    {change: func(c *runtimev1.ExtensionConfig) { c.Generation = 2 }, want: hook.ReasonNotReady},
		"caBundle that is none":  {change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = []byte("x") }, want: "InvalidCABundle"},
		"no handlers at all":     {change: func(c *runtimev1.ExtensionConfig) { c.Status.Handlers = nil }, want: "NotRegistered"},
		"handler of another one": {change: func(c *runtimev1.ExtensionConfig) { c.Status.Handlers[0].Name = "check.other" }, want: hook.ReasonNotReady},
		"not injected yet": {change: func(c *runtimev1.ExtensionConfig) {
			c.Annotations, c.Spec.ClientConfig.CABundle = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "ns/ca"}, nil
		}, want: hook.ReasonNotReady},
	}
	for name, tt := range tests {
		config := x.ExtensionConfig("ext")
		config.Status.Conditions = discovered("True", 1)
		config.Status.Handlers = []runtimev1.ExtensionHandler{{
			Name: "check.ext", RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: "BeforeClusterCreate"},
		}}
		if tt.change != nil {
			tt.change(config)
		}
		writes := 0
		build := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(config).WithStatusSubresource(config)
		c := build.WithInterceptorFuncs(countWrites(&writes)).Build()
		e := newExtensions(t)
		ctl, _ := newController(c, e, Settings{ReadOnly: true})
		if _, err := ctl.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "ext"}}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := called(t, e)
		if f := fault.As(err); (f == nil) != (tt.want == "") || f != nil && f.Reason != tt.want {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if writes != 0 {
			t.Errorf("%s: %d writes", name, writes)
		}
	}
	if n := len(x.Bodies(hooks.Discovery.Path(""))); n != 0 {
		t.Errorf("it asked for the handlers %d times", n)
	}
}

// RT-20: what a read-only manager took over stays in use until the other manager has discovered the new spec.
func TestReadOnlyFollows(t *testing.T) {
	x, next := handles(t), handles(t)
	config := x.ExtensionConfig("ext")
	config.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True", Reason: "R", ObservedGeneration: 1, LastTransitionTime: metav1.Now()}}
	config.Status.Handlers = []runtimev1.ExtensionHandler{{
		Name: "check.ext", RequestHook: runtimev1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: "BeforeClusterCreate"},
	}}
	c := stub(config)
	e := newExtensions(t)
	ctl, _ := newController(c, e, Settings{ReadOnly: true})
	calls := func(when string, first, second int) {
		t.Helper()
		if _, err := ctl.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "ext"}}); err != nil {
			t.Fatal(err)
		}
		if err := called(t, e); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		path := hooks.ID{Name: hooks.Name{Group: hooks.Group, Hook: "BeforeClusterCreate"}, Version: "v1alpha1"}.Path("check")
		if n, m := len(x.Bodies(path)), len(next.Bodies(path)); n != first || m != second {
			t.Errorf("%s: %d and %d calls, want %d and %d", when, n, m, first, second)
		}
	}
	calls("at first", 1, 0)
	o := get(t, c)
	o.Generation, o.Spec.ClientConfig = 2, next.ExtensionConfig("ext").Spec.ClientConfig
	if err := c.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	calls("a new spec", 2, 0)
	o = get(t, c)
	o.Status.Conditions[0].ObservedGeneration = 2
	if err := c.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	calls("discovered for the new spec", 2, 1)
}

// RT-31: an extension that nothing can be asked of yet is missed all the same.
func TestRegisteredBeforeDiscovered(t *testing.T) {
	x := handles(t)
	for name, change := range map[string]func(*runtimev1.ExtensionConfig){
		"Secret not there": func(c *runtimev1.ExtensionConfig) {
			c.Annotations = map[string]string{runtimev1.InjectCAFromSecretAnnotation: "ns/authority"}
		},
		"paused":    func(c *runtimev1.ExtensionConfig) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} },
		"not there": func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://127.0.0.1:1" },
	} {
		config := x.ExtensionConfig("ext")
		change(config)
		c, e := stub(config), newExtensions(t)
		ctl, _ := newController(c, e, Settings{})
		pass(t, c, ctl)
		e.Prime()
		o := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		_, err := e.CallAll(t.Context(), o, hook.Invocation{Request: &hooksv1.BeforeClusterDeleteRequest{}, Response: &hooksv1.BeforeClusterDeleteResponse{}})
		if f := fault.As(err); f == nil || f.Reason != hook.ReasonNotReady && f.Reason != "NotDiscovered" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// RT-30: a discovery that lists the same handlers in another order changes nothing.
func TestOrderOfDiscovery(t *testing.T) {
	list := func(names ...string) string {
		response := &hooksv1.DiscoveryResponse{}
		response.Status = hooksv1.ResponseStatusSuccess
		for _, name := range names {
			response.Handlers = append(response.Handlers, hooktest.Handler(name, "BeforeClusterCreate"))
		}
		text, err := json.Marshal(response)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	x := hooktest.Start(t, hooktest.Options{})
	config := x.ExtensionConfig("ext")
	writes := 0
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(config).WithStatusSubresource(config).
		WithReturnManagedFields().WithInterceptorFuncs(countWrites(&writes)).Build()
	ctl, _ := newController(c, newExtensions(t), Settings{})
	moment := time.Now()
	ctl.now = func() time.Time { return moment }
	for _, order := range []string{list("b", "c", "a"), list("c", "a", "b"), list("a", "b", "c")} {
		x.Serve(hooks.Discovery.Path(""), hooktest.Raw(order))
		moment = moment.Add(time.Hour)
		if _, err := ctl.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "ext"}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(x.Bodies(hooks.Discovery.Path(""))); n != 3 || writes != 1 {
		t.Errorf("%d discoveries and %d writes, want 3 and 1", n, writes)
	}
	var names []string
	for _, h := range get(t, c).Status.Handlers {
		names = append(names, h.Name)
	}
	if diff := cmp.Diff([]string{"a.ext", "b.ext", "c.ext"}, names); diff != "" {
		t.Errorf("status.handlers:\n%s", diff)
	}
}

// A failing extension costs one write, however often it is tried.
func TestWritesOnceWhileItFails(t *testing.T) {
	config := handles(t).ExtensionConfig("ext")
	config.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	writes := 0
	c := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(config).WithStatusSubresource(config).
		WithReturnManagedFields().WithInterceptorFuncs(countWrites(&writes)).Build()
	e := newExtensions(t)
	ctl, _ := newController(c, e, Settings{})
	moment := time.Now()
	ctl.now = func() time.Time { return moment }
	for range 10 {
		moment = moment.Add(10 * time.Minute) // past every pause
		if _, err := ctl.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "ext"}}); err != nil {
			t.Fatal(err)
		}
	}
	if writes != 1 {
		t.Errorf("%d writes, want 1", writes)
	}
	if got, want := get(t, c).Status.Conditions[0].Message, "nothing listens at 127.0.0.1:1; "+retryText; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}
