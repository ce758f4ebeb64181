package extensionconfig

import (
	"context"
	"net/http"
	"strings"
	"testing"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/sdk/hooks"
	"github.com/slipwayhq/slipway/test/hooktest"
)

const (
	discoveryText = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryResponse","status":"Success","handlers":[]}`
	answerText    = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateResponse","status":"Success","retryAfterSeconds":0}`
)

// replaced serves a text with one part of it changed.
func replaced(text, old, new string) http.HandlerFunc {
	return hooktest.Raw(strings.Replace(text, old, new, 1))
}

func stub(config *runtimev1.ExtensionConfig) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(config).WithStatusSubresource(config).WithReturnManagedFields().Build()
}

// verdict is a condition as status and message.
func verdict(o *runtimev1.ExtensionConfig, conditionType string) string {
	c := condition.Set(o.Status.Conditions).Get(conditionType)
	if c == nil {
		return "absent"
	}
	return strings.TrimSuffix(string(c.Status)+": "+c.Message, ": ")
}

// badDiscovery is a way for discovery to fail.
type badDiscovery struct {
	options hooktest.Options
	serve   http.HandlerFunc // instead of the list of handlers
	list    []hooksv1.ExtensionHandler
	change  func(*runtimev1.ExtensionConfig)
	want    string // of condition Discovered; HOST stands for where the extension is
}

// RT-06, RT-07, RT-15: what the condition says for each answer to discovery that is none, from a real TLS server; it says
// the same the next time.
func TestBadDiscovery(t *testing.T) {
	const doc = "the response is not a DiscoveryResponse in JSON"
	const wanted = ", want DiscoveryResponse of hooks.runtime.cluster.x-k8s.io/v1alpha1"
	same, unknown := hooktest.Handler("same", "BeforeClusterCreate"), hooktest.Handler("h", "BeforeLunch")
	tests := map[string]badDiscovery{
		"good":           {serve: hooktest.Raw(discoveryText), want: "True"},
		"no type":        {serve: hooktest.Raw(`{"status":"Success"}`), want: "True"}, // RT-28: a reference server without handlers
		"unknown fields": {serve: replaced(discoveryText, `"status"`, `"mood":"sunny","status"`), want: "True"},
		"wrong kind": {
			serve: replaced(discoveryText, "DiscoveryResponse", "Discovery"),
			want:  "False: the response is a Discovery of hooks.runtime.cluster.x-k8s.io/v1alpha1" + wanted,
		},
		"wrong apiVersion": {
			serve: replaced(discoveryText, "v1alpha1", "v2"),
			want:  "False: the response is a DiscoveryResponse of hooks.runtime.cluster.x-k8s.io/v2" + wanted,
		},
		"invalid JSON": {serve: hooktest.Raw(discoveryText[1:]), want: "False: " + doc},
		"21 MiB": {
			serve: hooktest.Raw(`{"message":"` + strings.Repeat("x", 21<<20) + `"}`), want: "False: the response of HOST is larger than 20 MiB",
		},
		"no end":         {serve: hooktest.Flood, want: "False: the response of HOST is larger than 20 MiB"},
		"slow drip":      {serve: hooktest.Drip, want: "False: HOST did not respond in time"},
		"status missing": {serve: replaced(discoveryText, `"status":"Success",`, ""), want: "False: the response has no status; want Success or Failure"},
		"status Failure": {serve: replaced(discoveryText, `Success"`, `Failure","message":"not today"`), want: "False: responded with status Failure: not today"},
		"reset":          {serve: hooktest.Cut(true), want: "False: HOST closed the connection before the response was complete"},
		"closed":         {serve: hooktest.Cut(false), want: "False: HOST closed the connection before the response was complete"},
		"500":            {serve: hooktest.Status(500), want: "False: HOST responded with HTTP 500 Internal Server Error"},
		"redirect": {
			serve: http.RedirectHandler("https://127.0.0.1:1/", http.StatusFound).ServeHTTP,
			want:  "False: HOST responded with a redirect (HTTP 302), which is not followed",
		},
		"duplicate name": {list: []hooksv1.ExtensionHandler{same, same}, want: `False: handler "same": the name is not unique`},
		"unknown hook": {
			list: []hooksv1.ExtensionHandler{same, unknown},
			want: `False: handler "h": there is no hook BeforeLunch in hooks.runtime.cluster.x-k8s.io/v1alpha1`,
		},
		"certificate expired": {
			options: hooktest.Options{Certificate: hooktest.Certificate{Expired: true}},
			want:    "False: the certificate of HOST has expired or is not valid yet; renew it",
		},
		"certificate for another host": {
			options: hooktest.Options{Certificate: hooktest.Certificate{Name: "elsewhere.example.com"}},
			want:    "False: the certificate of HOST is for another name; issue one for this name",
		},
		"another authority": {
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.CABundle = hooktest.NewAuthority(t).PEM },
			want:   "False: the certificate of HOST is not signed by a CA in spec.clientConfig.caBundle; correct caBundle",
		},
		"DNS": {
			change: func(c *runtimev1.ExtensionConfig) { c.Spec.ClientConfig.URL = "https://extension.invalid" },
			want:   "False: the name extension.invalid cannot be resolved",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testBadDiscovery(t, tt)
		})
	}
}

func testBadDiscovery(t *testing.T, tt badDiscovery) {
	x := hooktest.Start(t, tt.options)
	for _, h := range tt.list {
		x.Handle(h, nil)
	}
	if tt.serve != nil {
		x.Serve(hooks.Discovery.Path(""), tt.serve)
	}
	config := x.ExtensionConfig("ext")
	if tt.change != nil {
		tt.change(config)
	}
	want := strings.ReplaceAll(tt.want, "HOST", x.Listener.Addr().String())
	if strings.HasPrefix(want, "False") {
		want += "; " + retryText
	}
	c := stub(config)
	ctl, _ := newController(c, newExtensions(t), Settings{})
	pass(t, c, ctl)
	o := get(t, c)
	if got := verdict(o, "Discovered"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := verdict(o, answeringCondition); (got == "True") != (want == "True") {
		t.Errorf("Answering is %s", got)
	}
}

// RT-15, RT-19: what the condition says once calls failed five times, and that it says nothing where an extension is there
// and answers, however wrongly.
func TestBadCalls(t *testing.T) {
	const doc = "the response is not a BeforeClusterCreateResponse in JSON"
	tests := map[string]struct {
		serve http.HandlerFunc
		want  string // the cause; empty: the extension is there
	}{
		"good":                       {serve: hooktest.Raw(answerText)},
		"wrong kind":                 {serve: replaced(answerText, "Create", "Delete")},
		"wrong apiVersion":           {serve: replaced(answerText, "v1alpha1", "v2")},
		"unknown fields":             {serve: replaced(answerText, `"status"`, `"mood":"sunny","status"`)},
		"status missing":             {serve: replaced(answerText, `"status":"Success",`, "")},
		"status Failure":             {serve: replaced(answerText, "Success", "Failure")},
		"negative retryAfterSeconds": {serve: replaced(answerText, `Seconds":0`, `Seconds":-1`)},
		"invalid JSON":               {serve: hooktest.Raw(answerText[1:]), want: doc},
		"21 MiB":                     {serve: hooktest.Raw(`{"message":"` + strings.Repeat("x", 21<<20) + `"}`), want: "the response of HOST is larger than 20 MiB"},
		"no end":                     {serve: hooktest.Flood, want: "the response of HOST is larger than 20 MiB"},
		"slow drip":                  {serve: hooktest.Drip, want: "HOST did not respond in time"},
		"reset":                      {serve: hooktest.Cut(true), want: "HOST closed the connection before the response was complete"},
		"404":                        {serve: http.NotFound, want: "HOST responded with HTTP 404 Not Found"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := hooktest.Start(t, hooktest.Options{})
			h := hooktest.Handler("check", "BeforeClusterCreate")
			h.TimeoutSeconds = new(int32(30)) // a busy machine may take its time
			if name == "slow drip" {
				h.TimeoutSeconds = new(int32(1)) // nothing else ends it
			}
			x.Handle(h, tt.serve)
			c, e := stub(x.ExtensionConfig("ext")), newExtensions(t)
			ctl, _ := newController(c, e, Settings{})
			pass(t, c, ctl)
			woken := 0
			e.OnChange(func(string) { woken++ })
			for range 5 {
				_ = called(t, e)
			}
			pass(t, c, ctl)
			want := "True"
			if tt.want != "" {
				want = "False: Calls of check (" + strings.ReplaceAll(tt.want, "HOST", x.Listener.Addr().String()) + ") stopped after several failures in a row; " + retryText +
					". Until then handlers with failure policy Fail block the operations that call them, and handlers with failure policy Ignore are skipped"
			}
			if got := verdict(get(t, c), answeringCondition); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			wakes := 0
			if tt.want != "" {
				wakes++
			}
			if name == "404" {
				wakes++ // the first asks for a discovery: the handlers may have changed
			}
			if woken != wakes {
				t.Errorf("the controller was woken %d times, want %d", woken, wakes)
			}
			if got := verdict(get(t, c), "Discovered"); got != "True" {
				t.Errorf("Discovered is %s: calls are not discovery", got)
			}
		})
	}
}

// A caller that gives up before discovery ends leaves no verdict behind.
func TestDiscoveryGivenUp(t *testing.T) {
	x := hooktest.Start(t, hooktest.Options{})
	asked := make(chan struct{})
	x.Serve(hooks.Discovery.Path(""), func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		hooktest.Silent(w, r)
	})
	e := newExtensions(t)
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-asked; stop() }()
	if _, err := e.Discover(ctx, x.ExtensionConfig("ext")); err == nil {
		t.Error("no error")
	}
	if s := e.State("ext"); s.Problem != nil || s.Generation != 0 {
		t.Errorf("known of it: %+v", s)
	}
}
