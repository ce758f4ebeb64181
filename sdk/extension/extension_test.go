package extension_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/extensiontest"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

const group = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"

func create(do func(ctx context.Context, in *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse)) extension.Handler {
	return extension.On("before-create", hooksv1.BeforeClusterCreate, do)
}

func answerNothing(context.Context, *hooksv1.BeforeClusterCreateRequest, *hooksv1.BeforeClusterCreateResponse) {
}

func newExtension(t *testing.T, handlers ...extension.Handler) *extension.Extension {
	t.Helper()
	x, err := extension.New(handlers...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// RT-23: discovery is made from the handlers.
func TestDiscovery(t *testing.T) {
	x := newExtension(t,
		create(answerNothing),
		extension.On("patch", hooksv1.GeneratePatches, func(context.Context, *hooksv1.GeneratePatchesRequest, *hooksv1.GeneratePatchesResponse) {}).
			WithTimeout(5*time.Second).WithFailurePolicy(hooksv1.FailurePolicyIgnore),
	)
	want := &hooksv1.DiscoveryResponse{Handlers: []hooksv1.ExtensionHandler{
		{
			Name: "before-create", TimeoutSeconds: new(int32(10)), FailurePolicy: new(hooksv1.FailurePolicyFail),
			RequestHook: hooksv1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
		},
		{
			Name: "patch", TimeoutSeconds: new(int32(5)), FailurePolicy: new(hooksv1.FailurePolicyIgnore),
			RequestHook: hooksv1.GroupVersionHook{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "GeneratePatches"},
		},
	}}
	want.APIVersion, want.Kind, want.Status = "hooks.runtime.cluster.x-k8s.io/v1alpha1", "DiscoveryResponse", "Success"
	if d := cmp.Diff(want, extensiontest.Discover(t, x)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// RT-07, RT-23: what discovery would refuse is refused at the start, all of it at once.
func TestNewRefuses(t *testing.T) {
	cases := map[string]struct {
		reason   string
		handlers []extension.Handler
		want     []string
	}{
		"twice":    {"a name is unique", []extension.Handler{create(answerNothing), create(answerNothing)}, []string{`"before-create": the name is taken`}},
		"name":     {"a name is a DNS label", []extension.Handler{extension.On("Not.A.Label", hooksv1.BeforeClusterCreate, answerNothing)}, []string{"not a DNS label"}},
		"long":     {"30 s is the most", []extension.Handler{create(answerNothing).WithTimeout(31 * time.Second)}, []string{"the timeout 31s"}},
		"fraction": {"the protocol has whole seconds", []extension.Handler{create(answerNothing).WithTimeout(1500 * time.Millisecond)}, []string{"1.5s is not a whole number"}},
		"policy":   {"there are two policies", []extension.Handler{create(answerNothing).WithFailurePolicy("Maybe")}, []string{`"Maybe" is neither Fail nor Ignore`}},
		"empty":    {"a handler is made with On", []extension.Handler{{Name: "x"}}, []string{"made without extension.On"}},
		"all": {"an author fixes all at once", []extension.Handler{create(answerNothing).WithTimeout(-1), extension.On("", hooksv1.BeforeClusterCreate, answerNothing)},
			[]string{"the timeout -1ns", `handler "": the name is not a DNS label`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := extension.New(tc.handlers...)
			if err == nil {
				t.Fatalf("%s: no error", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is not in %v", tc.reason, want, err)
				}
			}
		})
	}
}

// RT-10, RT-23: what the protocol says about requests that reach no handler.
func TestRequests(t *testing.T) {
	x := newExtension(t, create(answerNothing))
	const good = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"`
	path := group + "beforeclustercreate/before-create"
	cases := map[string]struct {
		reason, method, path, body string
		code                       int
		want                       string
	}{
		"good":          {"the simplest request", "POST", path, good + "}", 200, `"status":"Success"`},
		"kind of reply": {"the response says what it is", "POST", path, good + "}", 200, `"kind":"BeforeClusterCreateResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"`},
		"newer caller":  {"unknown fields are ignored", "POST", path, good + `,"tomorrow":1}`, 200, "Success"},
		"other path":    {"the error helps", "POST", path + "x", good + "}", 404, "the Discovery hook names those"},
		"method":        {"hooks are POST", "GET", path, "", 405, "POST"},
		"no JSON":       {"garbage is refused", "POST", path, "{", 400, "not JSON"},
		"other kind":    {"another request is refused", "POST", path, strings.ReplaceAll(good, "BeforeClusterCreate", "GeneratePatches") + "}", 400, `takes a "BeforeClusterCreateRequest"`},
		"other version": {"another version is refused", "POST", path, strings.ReplaceAll(good, "v1alpha1", "v1") + "}", 400, "v1alpha1"},
		"wrong field":   {"a field of another type is refused", "POST", path, good + `,"cluster":3}`, 400, "not a valid BeforeClusterCreateRequest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			x.Handler(quiet()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, strings.NewReader(tc.body)))
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%s: got %d %s, want %d %s", tc.reason, w.Code, w.Body, tc.code, tc.want)
			}
			if kind := w.Header().Get("Content-Type"); (kind == "application/json") != (tc.code == http.StatusOK) {
				t.Errorf("%s: the answer is %s", tc.reason, kind)
			}
		})
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// RT-23: what handlers do wrong becomes a response with status Failure, never a broken server.
func TestHandlersThatFail(t *testing.T) {
	cases := map[string]struct {
		reason  string
		do      func(out *hooksv1.BeforeClusterCreateResponse)
		message string
		log     string
	}{
		"panic": {"the caller sees no secret that a panic may hold, the log has the stack",
			func(*hooksv1.BeforeClusterCreateResponse) { panic("token=123") }, `handler "before-create" panicked`, "extension_test.go"},
		"status": {"there are two states", func(o *hooksv1.BeforeClusterCreateResponse) { o.Status = "Great" },
			`handler "before-create" answered wrongly: the status "Great" is neither Success nor Failure`, "invalid"},
		"negative": {"a caller would refuse it", func(o *hooksv1.BeforeClusterCreateResponse) { o.RetryAfterSeconds = -1 },
			`handler "before-create" answered wrongly: retryAfterSeconds is negative`, "invalid"},
		"said so": {"a handler's own Failure is passed on",
			func(o *hooksv1.BeforeClusterCreateResponse) { o.Status, o.Message = "Failure", "no quota" }, "no quota", "Failure"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			x := newExtension(t, create(func(_ context.Context, _ *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) {
				tc.do(out)
			}))
			var log bytes.Buffer
			w := httptest.NewRecorder()
			x.Handler(slog.New(slog.NewTextHandler(&log, nil))).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", group+"beforeclustercreate/before-create",
				strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"}`)))
			out := w.Body.String()
			if w.Code != http.StatusOK || !strings.Contains(out, `"status":"Failure"`) || !strings.Contains(out, jsonText(tc.message)) {
				t.Errorf("%s: %d %s", tc.reason, w.Code, out)
			}
			if strings.Contains(out, "token") {
				t.Errorf("%s: the panic is in the response: %s", tc.reason, out)
			}
			if !strings.Contains(log.String(), tc.log) {
				t.Errorf("%s: %q is not in the log:\n%s", tc.reason, tc.log, log.String())
			}
		})
	}
}

func jsonText(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }

// RT-23: a handler has its request, a logger that says what the call is about, and no more time than it asked for.
func TestCall(t *testing.T) {
	var log bytes.Buffer
	x := newExtension(t, create(func(ctx context.Context, in *hooksv1.BeforeClusterCreateRequest, out *hooksv1.BeforeClusterCreateResponse) {
		deadline, ok := ctx.Deadline()
		if left := time.Until(deadline); !ok || left > 7*time.Second || left <= 0 {
			t.Errorf("the handler has %v", left)
		}
		extension.Log(ctx).Info("at work")
		out.Message, out.RetryAfterSeconds = in.Settings["region"], 30
	}).WithTimeout(7*time.Second))
	request := &hooksv1.BeforeClusterCreateRequest{CommonRequest: hooksv1.CommonRequest{Settings: map[string]string{"region": "north"}}}
	request.Cluster.Namespace, request.Cluster.Name = "team", "demo"
	out := extensiontest.Call[hooksv1.BeforeClusterCreateResponse](t, x, "before-create", request)
	if out.Message != "north" || out.RetryAfterSeconds != 30 || out.Status != hooksv1.ResponseStatusSuccess {
		t.Errorf("got %+v", out)
	}
	w := httptest.NewRecorder()
	x.Handler(slog.New(slog.NewTextHandler(&log, nil))).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST",
		group+"beforeclustercreate/before-create?timeout=1s", strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",
		"kind":"BeforeClusterCreateRequest","cluster":{"metadata":{"namespace":"team","name":"demo"}}}`)))
	for _, want := range []string{`msg="at work" hook=BeforeClusterCreate handler=before-create object="Cluster team/demo"`, "msg=answered", "result=Success"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in the log:\n%s", want, log.String())
		}
	}
	families, err := x.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, f := range families {
		if f.GetName() == "runtime_extension_calls_total" {
			found = f.Metric[0].Counter.GetValue() == 2
		}
	}
	if !found {
		t.Errorf("two calls are not counted: %v", families)
	}
}

// placement is a hook of a test catalog with two versions.
type placementRequest struct {
	hooksv1.BeforeClusterCreateRequest
	Zone string `json:"zone"`
}

func (p *placementRequest) DeepCopyObject() runtime.Object { c := *p; return &c }

type placementResponse struct {
	hooksv1.BeforeClusterCreateResponse
}

func (p *placementResponse) DeepCopyObject() runtime.Object { c := *p; return &c }

func placement(*placementRequest, *placementResponse) {}

// RT-16, RT-23: an extension may serve hooks of any catalog, in any of its versions.
func TestOtherCatalog(t *testing.T) {
	c, err := hooks.New(append(hooks.ClusterAPI(), hooks.Hook{
		ID:         hooks.ID{Name: hooks.Name{Group: "hooks.runtime.example.org", Hook: "Placement"}, Version: "v1"},
		NewRequest: func() runtime.Object { return &placementRequest{} }, NewResponse: func() hooks.Response { return &placementResponse{} },
	}))
	if err != nil {
		t.Fatal(err)
	}
	where := extension.On("where", placement, func(_ context.Context, in *placementRequest, out *placementResponse) { out.Message = "in " + in.Zone })
	if _, err := extension.New(where); err == nil {
		t.Error("the hook is not one of Cluster API, and no catalog says what it is")
	}
	x, err := extension.NewFor(c, where)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	x.Handler(quiet()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/hooks.runtime.example.org/v1/placement/where",
		strings.NewReader(`{"apiVersion":"hooks.runtime.example.org/v1","kind":"PlacementRequest","zone":"a"}`)))
	if !strings.Contains(w.Body.String(), `"message":"in a"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// RT-23, RT-29: a handler has as long as the caller says in the URL, and never longer than it asked for itself.
func TestTimeoutOfTheCaller(t *testing.T) {
	var left time.Duration
	x := newExtension(t, create(func(ctx context.Context, _ *hooksv1.BeforeClusterCreateRequest, _ *hooksv1.BeforeClusterCreateResponse) {
		deadline, _ := ctx.Deadline()
		left = time.Until(deadline)
	}).WithTimeout(7*time.Second))
	for query, want := range map[string]time.Duration{
		"": 7 * time.Second, "?timeout=1s": time.Second, "?timeout=500ms": 500 * time.Millisecond, "?timeout=1m30s": 7 * time.Second,
		"?timeout=-1s": 7 * time.Second, "?timeout=0s": 7 * time.Second, "?timeout=soon": 7 * time.Second,
	} {
		left = 0
		w := httptest.NewRecorder()
		x.Handler(quiet()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, group+"beforeclustercreate/before-create"+query,
			strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"}`)))
		if w.Code != http.StatusOK || left > want || left <= want/2 && want > time.Second {
			t.Errorf("%q: the handler has %s, want %s (%d)", query, left, want, w.Code)
		}
	}
}

// Where the caller shows each call, the extension logs those that were refused alone.
func TestQuiet(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		var log bytes.Buffer
		x := newExtension(t, create(func(context.Context, *hooksv1.BeforeClusterCreateRequest, *hooksv1.BeforeClusterCreateResponse) {}))
		cfg := extension.FromEnv(func(name string) string {
			if name == extension.EnvQuiet && quiet {
				return "true"
			}
			return ""
		})
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		call := func(body string) string {
			log.Reset()
			x.HandlerOf(cfg).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", group+"beforeclustercreate/before-create", strings.NewReader(body)))
			return log.String()
		}
		good := call(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"}`)
		if bad := call("{"); strings.Contains(good, "msg=answered") == quiet || bad == "" {
			t.Errorf("quiet %v: %q, and of one that was refused %q", quiet, good, bad)
		}
	}
}
