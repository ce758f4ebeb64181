package mirror_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/internal/fleet/mirror"
	"github.com/slipwayhq/slipway/internal/rootcause"
	"github.com/slipwayhq/slipway/test/mirrortest"
)

// changingAPI serves the kinds of an API in version v2 instead of v1alpha1, or none of its group infrastructure.slipway.dev.
// It does not respond while it is down.
type changingAPI struct {
	api                  *mirrortest.API
	renamed, empty, down atomic.Bool
}

func (a *changingAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const group = "/apis/infrastructure.slipway.dev/"
	if a.down.Load() {
		panic(http.ErrAbortHandler)
	}
	isGroup := strings.HasPrefix(r.URL.Path, group)
	switch {
	case isGroup && a.empty.Load() && strings.Count(r.URL.Path, "/") == 3:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"infrastructure.slipway.dev/v1alpha1","resources":[]}`))
	case isGroup && a.empty.Load(), isGroup && a.renamed.Load() && strings.HasPrefix(r.URL.Path, group+"v1alpha1"):
		http.NotFound(w, r)
	case a.renamed.Load():
		r.URL.Path = strings.Replace(r.URL.Path, group+"v2", group+"v1alpha1", 1)
		a.api.ServeHTTP(renamingWriter{w}, r)
	default:
		a.api.ServeHTTP(w, r)
	}
}

type renamingWriter struct{ http.ResponseWriter }

func (w renamingWriter) Write(data []byte) (int, error) {
	_, err := w.ResponseWriter.Write(bytes.ReplaceAll(data, []byte("v1alpha1"), []byte("v2")))
	return len(data), err
}

func (w renamingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// startChanging runs a mirror of the API, and returns a function that waits for a state of it.
func startChanging(t *testing.T) (*changingAPI, *httptest.Server, *mirror.Mirror, func(string, func() bool)) {
	t.Helper()
	api := &changingAPI{api: mirrortest.Start(t, mirrortest.Cluster("team", "a"))}
	server := httptest.NewServer(api)
	signal := make(chan struct{}, 1)
	notify := func() {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
	m, err := mirror.New(&rest.Config{Host: server.URL}, mirror.Options{OnChange: func(mirror.Change) { notify() }, OnStatus: notify})
	if err != nil {
		t.Fatal(err)
	}
	m.SetRediscover(50 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { m.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended; server.CloseClientConnections(); server.Close() })
	return api, server, m, func(what string, reached func() bool) {
		t.Helper()
		limit := time.After(time.Minute)
		for !reached() {
			select {
			case <-signal:
			case <-limit:
				t.Fatalf("%s: %+v", what, m.Status())
			}
		}
	}
}

func TestKindsChange(t *testing.T) {
	localMachine := schema.GroupKind{Group: "infrastructure.slipway.dev", Kind: "LocalMachine"}
	api, server, m, wait := startChanging(t)
	wait("the first list", func() bool { return m.Status().Synced && len(m.Store.Objects(localMachine, "")) == 2 })
	api.renamed.Store(true)
	server.CloseClientConnections()
	version := func() string {
		u, _ := m.Store.Get(rootcause.Ref{Group: localMachine.Group, Kind: localMachine.Kind, Namespace: "team", Name: "a-cp"})
		return u.GetAPIVersion()
	}
	wait("another version", func() bool { return strings.HasSuffix(version(), "/v2") })
	if n := len(m.Store.Objects(localMachine, "")); n != 2 {
		t.Errorf("%d objects in the new version", n)
	}
	api.renamed.Store(false)
	api.empty.Store(true)
	wait("a kind that is not served", func() bool { return len(m.Store.Objects(localMachine, "")) == 0 })
	if got := m.CopyOf(localMachine); got.IsComplete() || got.Reason == "" {
		t.Errorf("the copy is %+v", got)
	}
	api.empty.Store(false)
	wait("the kind again", func() bool { return m.CopyOf(localMachine).IsComplete() && len(m.Store.Objects(localMachine, "")) == 2 })
}

func TestOutage(t *testing.T) {
	api, server, m, wait := startChanging(t)
	wait("the first list", func() bool { return m.Status().Clusters.IsComplete() })
	api.down.Store(true)
	server.CloseClientConnections()
	wait("an outage", func() bool { return m.Status().Clusters.Reason == "the API server does not respond" })
	if got := m.Status().Clusters; !got.Listed {
		t.Errorf("the copy is %+v", got)
	}
	api.down.Store(false)
	wait("the recovery", func() bool { return m.Status().Clusters.IsComplete() })
}
