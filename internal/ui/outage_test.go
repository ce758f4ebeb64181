package ui

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

// unreadServer returns a server of a source that has been read as far as possible, after the patience has ended.
func unreadServer(t *testing.T, cfg *rest.Config) *Server {
	t.Helper()
	now := mirrortest.Now()
	source, err := NewSource(SourceOptions{Title: "prod", Config: cfg, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer([]*Source{source}, mirrortest.Now)
	if err != nil {
		t.Fatal(err)
	}
	_ = source.mirror.Load(t.Context())
	now = now.Add(patience)
	source.refresh()
	return s
}

func lacks(t *testing.T, page, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(body, text) {
			t.Errorf("%s: the page contains %q:\n%s", page, text, body)
		}
	}
}

func checkNotRead(t *testing.T, s *Server, reason string) {
	t.Helper()
	needs := page(t, s, "/needs", 200)
	contains(t, "needs", needs, "It is unknown whether a cluster needs a person.", "<bdi>prod</bdi> is not read: "+reason, `data-stale="No data"`)
	lacks(t, "needs", needs, "Nothing needs")
	fleet := page(t, s, "/m/prod/", 200)
	contains(t, "fleet", fleet, "It is unknown which clusters exist: "+reason, `role="alert"`)
	lacks(t, "fleet", fleet, "There are no clusters")
	contains(t, "cluster", page(t, s, "/m/prod/cluster/team/a", 502), "the Clusters have not been read")
}

func TestUnreachableIsNoAllClear(t *testing.T) {
	api := httptest.NewServer(http.NotFoundHandler())
	api.Close()
	s := unreadServer(t, &rest.Config{Host: api.URL})
	checkNotRead(t, s, "the API server does not respond")
	contains(t, "extensions", page(t, s, "/m/prod/extensions", 200), "ExtensionConfigs cannot be read: the API server does not respond.")
}

func TestForbiddenIsNoAllClear(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Forbid("clusters")
	api.Forbid("extensionconfigs")
	api.Forbid("localmachines")
	s := unreadServer(t, api.Config())
	checkNotRead(t, s, "you may not list and watch this kind")
	contains(t, "needs", page(t, s, "/needs", 200), "3 kinds not readable in <bdi>prod</bdi>")
	extensions := page(t, s, "/m/prod/extensions", 200)
	contains(t, "extensions", extensions, "ExtensionConfigs cannot be read: you may not list")
	lacks(t, "extensions", extensions, "No Runtime Extensions are registered")
}

// A kind that cannot be read does not hide the rest of a cluster.
func TestTreeWithUnreadKind(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Forbid("localclusters")
	s := testServer(t, api, nil)
	body := page(t, s, "/m/prod-script-alert-1-script/cluster/team/a", 200)
	contains(t, "cluster", body, "Not all objects are shown: listing LocalCluster.infrastructure.slipway.dev: localclusters is forbidden", ">Not read<", "KubeadmControlPlane", "Machines by version and stage", "The last hour")
}

// A problem of the processes of the management cluster is above everything else, with its cause, the time and the remedy.
func TestProcessProblem(t *testing.T) {
	found := true
	source, err := NewSource(SourceOptions{Title: "prod", Flags: "--data-dir /d", Config: mirrortest.Start(t, mirrortest.Cluster("team", "a")).Config(), Now: mirrortest.Now, Process: func() (rootcause.Chain, bool) {
		return rootcause.Chain{
			Links:  []rootcause.Link{{Object: rootcause.Ref{Kind: "Manager", Name: "/d"}, Message: "A signal <b>stopped</b> it", Since: mirrortest.Now().Add(-8 * time.Second)}},
			Remedy: rootcause.Remedy{Text: "Continue it", Command: "kill -CONT 4711"},
		}, found
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer([]*Source{source}, mirrortest.Now)
	if err != nil {
		t.Fatal(err)
	}
	_ = source.mirror.Load(t.Context())
	source.refresh()
	pages := []string{"/needs", "/m/prod/", "/m/prod/cluster/team/a"}
	for _, path := range pages {
		contains(t, path, page(t, s, path, 200), "The management cluster <bdi>prod</bdi> is not as it should be.", "A signal &lt;b&gt;stopped&lt;/b&gt; it", ">8s<", "What to do", "Continue it", "kill -CONT 4711<")
	}
	stream, _ := s.hub.subscribe("prod/fleet")
	found = false
	source.refresh()
	if len(stream.pending) == 0 {
		t.Error("the pages received no event when the problem ended")
	}
	lacks(t, "needs", page(t, s, "/needs", 200), "is not as it should be")
}

// The page of an object whose kind is not copied does not claim that everything is as it should be.
func TestCauseOfOtherKinds(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Put(t, `{apiVersion: infra.example.com/v1, kind: Other, metadata: {namespace: team, name: x}, status: {conditions: [{type: Ready, status: "False", reason: Broken, message: "", lastTransitionTime: "2026-05-04T11:00:00Z"}]}}`)
	s := testServer(t, api, nil)
	body := page(t, s, "/m/prod-script-alert-1-script/object/infra.example.com/Other/team/x", 200)
	contains(t, "object", body, "The cause is not computed for this kind.")
	lacks(t, "object", body, "Everything is as it should be")
}

func TestNoChainText(t *testing.T) {
	for name, tc := range map[string]struct {
		stored bool
		copy   mirror.Copy
		want   string
	}{
		"complete":   {true, mirror.Copy{Listed: true}, "Everything is as it should be."},
		"not copied": {false, mirror.Copy{Reason: "the API server does not serve this kind"}, "The cause is not computed for this kind."},
		"loading":    {true, mirror.Copy{}, "The cause is not computed for this kind."},
		"outage":     {true, mirror.Copy{Listed: true, Reason: "the API server does not respond"}, "The cause is not known, because objects of the kind X cannot be read: the API server does not respond."},
	} {
		if got := noChainText("X", tc.stored, tc.copy); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// While the API server does not respond, every page shows the time of its data. The outage and its end are published.
func TestOutageIsPublished(t *testing.T) {
	api := mirrortest.Start(t, mirrortest.Cluster("team", "a"))
	api.Put(t, `{apiVersion: infrastructure.slipway.dev/v1alpha1, kind: LocalMachine, metadata: {namespace: team, name: m, creationTimestamp: "2026-05-04T11:00:00Z", managedFields: [{manager: provider, operation: Update, subresource: status}]}, spec: {password: hunter2, providerID: "local://m"}}`)
	var down atomic.Bool
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
	}))
	source, err := NewSource(SourceOptions{Title: "prod", Config: &rest.Config{Host: proxy.URL}, Now: mirrortest.Now})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer([]*Source{source}, mirrortest.Now)
	if err != nil {
		t.Fatal(err)
	}
	object, _ := s.hub.subscribe("prod/object/g/K/ns/x")
	needs, _ := s.hub.subscribe("prod/fleet")
	stop := runSource(t, source)
	t.Cleanup(func() { stop(); proxy.CloseClientConnections(); proxy.Close() })
	waitUntil := func(what string, reached func() bool) {
		t.Helper()
		limit := time.After(time.Minute)
		for !reached() {
			select {
			case <-object.pending:
			case <-limit:
				t.Fatalf("%s: %+v", what, source.mirror.Status())
			}
		}
	}
	waitUntil("the first data", func() bool { return source.isReady() && source.readState().isComplete() })
	lacks(t, "fleet", page(t, s, "/m/prod/", 200), "data-stale")
	down.Store(true)
	proxy.CloseClientConnections()
	waitUntil("the outage", func() bool { return source.readState().Problem != "" })
	for _, path := range []string{"/m/prod/", "/needs"} {
		contains(t, path, page(t, s, path, 200), `data-stale="Data of 12:00:00 UTC"`, "the API server does not respond")
	}
	contains(t, "fleet", page(t, s, "/m/prod/", 200), `<bdi>a</bdi>`)
	checkCopy(t, s)
	down.Store(false)
	waitUntil("the recovery", func() bool { return source.readState().isComplete() })
	lacks(t, "needs", page(t, s, "/needs", 200), "data-stale")
	lacks(t, "object", page(t, s, copiedPath, 200), "shows the copy")
	if len(needs.pending) == 0 {
		t.Error("the list of what needs a person received no event")
	}
}

const copiedPath = "/m/prod/object/infrastructure.slipway.dev/LocalMachine/team/m"

// checkCopy checks that the pages of objects show the copy, which remains as it is.
func checkCopy(t *testing.T, s *Server) {
	t.Helper()
	of := rootcause.Ref{Group: "infrastructure.slipway.dev", Kind: "LocalMachine", Namespace: "team", Name: "m"}
	u, _ := s.sources[0].store.Get(of)
	before := u.DeepCopy()
	body := page(t, s, copiedPath, 200)
	contains(t, "object", body, "LocalMachine team/m cannot be read", `The page shows the copy of <time datetime="2026-05-04T12:00:00Z">12:00:00 UTC</time>`, "providerID: local://m", "password: &#39;***&#39;")
	if diff := cmp.Diff(before.Object, u.Object); diff != "" {
		t.Errorf("the page changed the copy:\n%s", diff)
	}
	contains(t, "cluster", page(t, s, "/m/prod/cluster/team/a", 200), "MachineDeployment")
	page(t, s, "/m/prod/object/infrastructure.slipway.dev/LocalMachine/team/none", 502)
}

// runSource runs a source, and returns the function that ends it.
func runSource(t *testing.T, s *Source) func() {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	return func() { cancel(); <-ended }
}

// failingListener accepts no connection.
type failingListener struct{ net.Listener }

func (failingListener) Accept() (net.Conn, error) { return nil, errors.New("too many open files") }

// A listener that fails ends the server, although the context is alive.
func TestListenerFails(t *testing.T) {
	s := testServer(t, mirrortest.Start(t, mirrortest.Cluster("team", "a")), nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Serve(t.Context(), failingListener{l}, testGuard(t)) }()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "too many open files") {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server does not end")
	}
}
