package extensiontools_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/cli/management"
	"github.com/slipwayhq/slipway/internal/extensiontools"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/recording"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// The test binary is also the extension that it runs: play says which.
const play = "EXTENSION_TEST_PLAY"

func TestMain(m *testing.M) {
	if role := os.Getenv(play); role != "" {
		if err := extend(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		return
	}
	os.Exit(m.Run())
}

// extend is an extension. "bye" answers something else than "hello", "silent" never listens, "broken" ends at once,
// "short" ends when it is called; "file:PATH" is what the file says.
func extend(role string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if file, ok := strings.CutPrefix(role, "file:"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		role = string(text)
	}
	fmt.Fprintf(os.Stderr, "kubeconfig=%q\n", os.Getenv("KUBECONFIG"))
	switch role {
	case "silent":
		<-ctx.Done()
		return nil
	case "broken":
		return errors.New("a mistake of the author")
	}
	x, err := extension.New(extension.On("greet", hooksv1.BeforeClusterCreate,
		func(_ context.Context, in *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) {
			if role == "short" {
				os.Exit(4)
			}
			out.Message = role + " " + in.Cluster.Name + in.Settings["suffix"]
			out.RetryAfterSeconds = 7
			if in.Cluster.Name == "bad" {
				out.Status = hooksv1.ResponseStatusFailure
			}
		}))
	if err != nil {
		return err
	}
	return x.Serve(ctx, extension.FromEnv(os.Getenv))
}

func process(role string, out *safe) extensiontools.LocalOptions {
	return extensiontools.LocalOptions{
		Command: []string{os.Args[0]}, Environment: append(os.Environ(), play+"="+role, "KUBECONFIG=/of/the/manager"), Out: out, Within: time.Minute,
	}
}

// safe is a buffer for several goroutines.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func exampleCluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{corev1.LabelMetadataName: "default"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{corev1.LabelMetadataName: "other"}}})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&runtimev1.ExtensionConfig{}).Build()
}

// manage plays the manager: it discovers extensions with its own client, until the test ends.
func manage(ctx context.Context, t *testing.T, c client.WithWatch) {
	t.Helper()
	w, err := c.Watch(ctx, &runtimev1.ExtensionConfigList{})
	if err != nil {
		t.Fatal(err)
	}
	extensions, err := hook.New(hook.Config{NamespaceLabels: func(context.Context, string) (labels.Set, error) { return nil, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	go func() {
		for e := range w.ResultChan() {
			config, ok := e.Object.(*runtimev1.ExtensionConfig)
			_, refresh := config.GetAnnotations()[hook.RefreshAnnotation]
			if !ok || len(config.Status.Conditions) > 0 && !refresh || e.Type == "DELETED" {
				continue
			}
			state, err := extensions.Discover(ctx, config)
			condition := metav1.Condition{Type: "Discovered", Status: "True", Reason: "Discovered", LastTransitionTime: metav1.Now()}
			if err != nil || state.Problem != nil {
				condition.Status, condition.Reason, condition.Message = "False", "NotDiscovered", fmt.Sprint(err, state.Problem)
			}
			config = config.DeepCopy()
			config.Status.Conditions = []metav1.Condition{condition}
			config.Status.Handlers = hook.StatusHandlers(config.Name, state.Handlers)
			_ = c.Status().Update(ctx, config)
			if refresh {
				delete(config.Annotations, hook.RefreshAnnotation)
				_ = c.Update(ctx, config)
			}
		}
	}()
}

// told collects what a session says.
type told struct {
	ready chan *runtimev1.ExtensionConfig
	calls chan recording.Call
	lines safe
}

func newTold() *told {
	return &told{ready: make(chan *runtimev1.ExtensionConfig, 10), calls: make(chan recording.Call, 100)}
}

func (o *told) options(p extensiontools.LocalOptions) extensiontools.SessionOptions {
	return extensiontools.SessionOptions{
		Process: p, Local: extensiontools.LocalRegistration{Name: "mine", Namespace: "default", Settings: map[string]string{"suffix": "!"}},
		Observe: func(c recording.Call) { o.calls <- c }, Now: time.Now, Discovered: func(c *runtimev1.ExtensionConfig) { o.ready <- c },
		Progress: func(s string) { _, _ = fmt.Fprintln(&o.lines, s) },
	}
}

func request(name, namespace string) []byte {
	return fmt.Appendf(nil, "cluster: {metadata: {name: %s, namespace: %s}}", name, namespace)
}

// A session from start to end: the management cluster discovers the extension, calls are seen, a call as the manager
// makes it is answered, the recording is repeated, and nothing is left.
func TestRun(t *testing.T) {
	c := exampleCluster(t)
	manage(t.Context(), t, c)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o, out := newTold(), &safe{}
	ended := make(chan error, 1)
	go func() { ended <- extensiontools.RunSession(ctx, c, o.options(process("hello", out))) }()
	var config *runtimev1.ExtensionConfig
	select {
	case config = <-o.ready:
	case err := <-ended:
		t.Fatalf("%v\n%s%s", err, o.lines.String(), out.String())
	}
	if len(config.Status.Handlers) != 1 || config.Status.Handlers[0].Name != "greet.mine" {
		t.Errorf("discovered: %+v", config.Status.Handlers)
	}
	if !strings.Contains(out.String(), `kubeconfig=""`) {
		t.Errorf("the extension knows the management cluster: %s", out.String())
	}
	first := <-o.calls
	if first.Hook != "discovery" || first.Code != 200 {
		t.Errorf("the first call is %+v", first)
	}
	result, err := extensiontools.Call(ctx, c, extensiontools.CallOptions{Handler: "greet", Request: request("demo", "default"), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	second := <-o.calls
	if result.Response.GetMessage() != "hello demo!" || result.Handler != "greet.mine" || result.Object != "Cluster default/demo" {
		t.Errorf("got %+v", result)
	}
	if second.Handler != "greet" || second.Object != "Cluster default/demo" || !strings.Contains(second.Response, "hello demo!") || second.Seconds <= 0 {
		t.Errorf("seen: %+v", second)
	}
	t.Run("call", func(t *testing.T) { testCall(t, c) })
	t.Run("replay", func(t *testing.T) { testReplay(t, []recording.Call{first, second}) })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the end of a session is no error: %v", err)
	}
	if all, err := extensiontools.ListExtensions(t.Context(), c); err != nil || len(all) != 0 {
		t.Errorf("registrations are left: %v %v", all, err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(config.Spec.ClientConfig.URL, "https://")); err == nil {
		t.Error("the proxy still listens")
	}
}

// RT-23: while files are watched, the extension is started again with the same registration; the one before stays where that does not
// work, and one that ends is no end of the session.
func TestWatch(t *testing.T) {
	c := exampleCluster(t)
	manage(t.Context(), t, c)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o, changed := newTold(), make(chan struct{})
	role := filepath.Join(t.TempDir(), "role")
	become := func(text string) {
		t.Helper()
		if err := os.WriteFile(role, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	become("hello")
	options := o.options(process("file:"+role, &safe{}))
	options.Changed = changed
	said := make(chan string, 100)
	options.Progress = func(s string) { said <- s }
	ended := make(chan error, 1)
	go func() { ended <- extensiontools.RunSession(ctx, c, options) }()
	first := <-o.ready
	answers := func(want string) {
		t.Helper()
		result, err := extensiontools.Call(ctx, c, extensiontools.CallOptions{Handler: "greet", Request: request("demo", "default"), Now: time.Now})
		if err != nil || result.Response.GetMessage() != want {
			t.Errorf("got %+v, %v, want %q", result.Response, err, want)
		}
	}
	await := func(want string) {
		t.Helper()
		for line := range said {
			if strings.Contains(line, want) {
				return
			}
		}
	}
	answers("hello demo!")
	become("bye")
	changed <- struct{}{}
	if now := <-o.ready; now.UID != first.UID || now.Spec.ClientConfig.URL != first.Spec.ClientConfig.URL {
		t.Errorf("the registration is another: %+v", now)
	}
	answers("bye demo!")
	become("broken")
	changed <- struct{}{}
	await("It cannot be started: the extension exited before it responded: exit status 3; the previous process serves the calls.")
	answers("bye demo!")
	become("short")
	changed <- struct{}{}
	<-o.ready
	if _, err := extensiontools.Call(ctx, c, extensiontools.CallOptions{Handler: "greet", Request: request("demo", "default"), Now: time.Now}); err == nil {
		t.Error("it has to end when it is called")
	}
	await("The extension exited: exit status 4; it is restarted when a file changes.")
	become("hello")
	changed <- struct{}{}
	<-o.ready
	answers("hello demo!")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the end of a session is no error: %v", err)
	}
	if all, err := extensiontools.ListExtensions(t.Context(), c); err != nil || len(all) != 0 {
		t.Errorf("registrations are left: %v %v", all, err)
	}
}

// RT-06: a refresh ends when the management cluster has discovered the extension once more, and says why it has not.
func TestRefresh(t *testing.T) {
	paused := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "paused", Annotations: map[string]string{clusterv1.PausedAnnotation: ""}}}
	silent := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "silent"}}
	silent.Spec.ClientConfig.URL = "https://127.0.0.1:1"
	silent.Status.Conditions = []metav1.Condition{{Type: "Discovered", Status: "True", Reason: "Discovered", LastTransitionTime: metav1.Now()}}
	c := exampleCluster(t, paused, silent)
	for name, want := range map[string]struct {
		kind fault.Kind
		text string
	}{
		"paused": {fault.Invalid, `extension "paused" is paused: it is not discovered until its annotation cluster.x-k8s.io/paused is removed`},
		"none":   {fault.Gone, `there is no extension "none"; there are: paused, silent`},
	} {
		if _, err := extensiontools.RefreshDiscovery(t.Context(), c, name, "1"); fault.KindOf(err) != want.kind || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if _, err := extensiontools.RefreshDiscovery(ctx, c, "silent", "1"); fault.KindOf(err) != fault.Unreachable {
		t.Errorf("nothing manages extensions: got %v", err)
	}
	manage(t.Context(), t, c)
	if _, err := extensiontools.RefreshDiscovery(t.Context(), c, "silent", "2"); fault.KindOf(err) != fault.Unreachable || !strings.Contains(err.Error(), "nothing listens at 127.0.0.1:1") {
		t.Errorf("the extension does not answer: got %v", err)
	}
	x, out := hooktest.Start(t, hooktest.Options{}), &runtimev1.ExtensionConfig{}
	x.Handle(hooktest.Handler("say", "BeforeClusterCreate"), nil)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(silent), out); err != nil {
		t.Fatal(err)
	}
	out.Spec = x.ExtensionConfig("silent").Spec
	if err := c.Update(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if got, err := extensiontools.RefreshDiscovery(t.Context(), c, "silent", "3"); err != nil || len(got.Status.Handlers) != 1 || got.Status.Handlers[0].Name != "say.silent" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// testCall calls what the manager could not, or only in another way.
func testCall(t *testing.T, c client.Client) {
	cases := map[string]struct {
		reason, handler string
		request         []byte
		kind            fault.Kind
		want            string
	}{
		"full name":     {"as in status.handlers", "greet.mine", request("demo", "default"), -1, ""},
		"failure":       {"a response with status Failure is an error", "greet", request("bad", "default"), fault.Transient, "hello bad!"},
		"other object":  {"the extension is for one namespace", "greet", request("demo", "other"), fault.Invalid, "does not apply to objects in namespace other"},
		"no handler":    {"the handlers are listed", "gret", request("demo", "default"), fault.Gone, `there is no handler "gret"; there are: greet.mine`},
		"other kind":    {"the request is for another hook", "greet", []byte("kind: GeneratePatchesRequest"), fault.Invalid, "takes a BeforeClusterCreateRequest"},
		"wrong field":   {"a field would be lost", "greet", []byte("clutser: {}"), fault.Invalid, `not a valid BeforeClusterCreateRequest: error unmarshaling JSON: while decoding JSON: json: unknown field "clutser"`},
		"not even YAML": {"nonsense", "greet", []byte("{"), fault.Invalid, "neither YAML nor JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := extensiontools.Call(t.Context(), c, extensiontools.CallOptions{Handler: tc.handler, Request: tc.request, Now: time.Now})
			if tc.kind < 0 {
				if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || tc.kind != fault.Transient && fault.KindOf(err) != tc.kind {
				t.Errorf("%s: got %v (%s), want %q", tc.reason, err, fault.KindOf(err), tc.want)
			}
		})
	}
}

// testReplay repeats what was recorded, with the same build and with another.
func testReplay(t *testing.T, calls []recording.Call) {
	var file bytes.Buffer
	for _, c := range calls {
		if err := recording.NewWriter(&file).Write(c); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := recording.Read(&file)
	if err != nil || recorded[1].Request != calls[1].Request {
		t.Fatalf("the request is not kept byte for byte: %v\n%s", err, cmp.Diff(calls[1].Request, recorded[1].Request))
	}
	for role, want := range map[string][]string{"hello": nil, "bye": {`message: "hello demo!" → "bye demo!"`}} {
		out := &safe{}
		x, err := extensiontools.StartLocal(t.Context(), process(role, out))
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		results, err := extensiontools.Replay(t.Context(), recorded, extensiontools.ReplayTarget{URL: x.URL, Client: x.Client, Now: time.Now},
			func(recording.Call) bool { return true }, func(extensiontools.ReplayResult) {})
		x.Stop()
		if err != nil || len(results) != 2 || len(results[0].Differences) != 0 {
			t.Fatalf("%s: %+v %v", role, results, err)
		}
		if d := cmp.Diff(want, results[1].Differences); d != "" {
			t.Errorf("%s (-want +got):\n%s", role, d)
		}
	}
}

// What goes wrong at the start, and later, is said, and leaves nothing behind.
func TestRunFails(t *testing.T) {
	taken := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	taken.Spec.ClientConfig.URL = "https://production.example.com"
	cases := map[string]struct {
		reason  string
		options func(*extensiontools.SessionOptions)
		exists  []client.Object
		manager bool
		kind    fault.Kind
		want    string
		left    int
	}{
		"no command": {"the command is missing", func(o *extensiontools.SessionOptions) { o.Process.Command = nil }, nil, false, fault.Invalid, "no command was given", 0},
		"no program": {"it does not exist", func(o *extensiontools.SessionOptions) { o.Process.Command = []string{"/does/not/exist"} }, nil, false, fault.Invalid, "cannot be started", 0},
		"broken":     {"it ends at once", func(o *extensiontools.SessionOptions) { o.Process = process("broken", &safe{}) }, nil, false, fault.Invalid, "exited before it responded: exit status 3", 0},
		"silent": {"it does not listen", func(o *extensiontools.SessionOptions) {
			o.Process = process("silent", &safe{})
			o.Process.Within = time.Second
		}, nil, false, fault.Unreachable, "EXTENSION_ADDRESS", 0},
		"other's":    {"the name is of another extension", func(*extensiontools.SessionOptions) {}, []client.Object{taken}, false, fault.Invalid, "choose another name with --name", 1},
		"ends later": {"it ends while it is registered", func(o *extensiontools.SessionOptions) { o.Process = process("short", &safe{}) }, nil, true, fault.Invalid, "the extension exited: exit status 4", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := exampleCluster(t, tc.exists...)
			o := newTold()
			options := o.options(process("hello", &safe{}))
			tc.options(&options)
			if tc.manager {
				manage(t.Context(), t, c)
				options.Discovered = func(*runtimev1.ExtensionConfig) {
					go func() {
						_, _ = extensiontools.Call(t.Context(), c, extensiontools.CallOptions{Handler: "greet", Request: request("demo", "default"), Now: time.Now})
					}()
				}
			}
			err := extensiontools.RunSession(t.Context(), c, options)
			if fault.KindOf(err) != tc.kind || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
			if all, err := extensiontools.ListExtensions(t.Context(), c); err != nil || len(all) != tc.left {
				t.Errorf("%d registrations are left, want %d: %v", len(all), tc.left, err)
			}
		})
	}
}
