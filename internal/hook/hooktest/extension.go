package hooktest

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

// Options say how an extension is served. The zero value is a healthy one.
type Options struct {
	// Authority that issues its certificate; nil: a new one.
	Authority *Authority
	// Certificate it shows.
	Certificate Certificate
	// TLS, where set, changes how it is served.
	TLS func(*tls.Config)
	// At, where set, is the address to listen at.
	At string
	// Prefix, where set, is the path below which all is served, without a slash at the end.
	Prefix string
}

// Extension is an extension that runs in the test.
type Extension struct {
	*httptest.Server
	Authority *Authority

	prefix      string
	mu          sync.Mutex
	handlers    []hooksv1.ExtensionHandler
	routes      map[string]http.HandlerFunc
	bodies      map[string][][]byte
	connections int
}

// Start serves an extension until the test ends. It has no handlers yet, and answers discovery.
func Start(t testing.TB, o Options) *Extension {
	t.Helper()
	if o.Authority == nil {
		o.Authority = NewAuthority(t)
	}
	x := &Extension{Authority: o.Authority, prefix: o.Prefix, routes: map[string]http.HandlerFunc{}, bodies: map[string][][]byte{}}
	x.routes[hooks.Discovery.Path("")] = x.discovery
	x.Server = httptest.NewUnstartedServer(http.HandlerFunc(x.serve))
	if o.At != "" {
		listener, err := net.Listen("tcp", o.At)
		must(t, err)
		must(t, x.Listener.Close())
		x.Listener = listener
	}
	x.Config.ErrorLog = log.New(io.Discard, "", 0)
	x.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			x.mu.Lock()
			x.connections++
			x.mu.Unlock()
		}
	}
	x.TLS = &tls.Config{Certificates: []tls.Certificate{o.Authority.Issue(o.Certificate)}}
	if o.TLS != nil {
		o.TLS(x.TLS)
	}
	x.StartTLS()
	t.Cleanup(func() {
		x.CloseClientConnections()
		x.Close()
	})
	return x
}

// ExtensionConfig returns the ExtensionConfig of the extension, as it is stored.
func (x *Extension) ExtensionConfig(name string) *runtimev1.ExtensionConfig {
	return &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: runtimev1.ExtensionConfigSpec{ClientConfig: runtimev1.ClientConfig{URL: x.URL + x.prefix,
			CABundle: x.Authority.PEM}},
	}
}

// Handle adds a handler to the list that discovery answers with, and serves it.
func (x *Extension) Handle(h hooksv1.ExtensionHandler, serve http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handlers = append(x.handlers, h)
	id, err := hooks.ParseID(h.RequestHook.APIVersion, h.RequestHook.Hook)
	if err == nil {
		x.routes[id.Path(h.Name)] = serve
	}
}

// Serve replaces what is served at a path, such as that of discovery.
func (x *Extension) Serve(path string, serve http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.routes[path] = serve
}

// Bodies returns the requests that came to a path, that of the prefix left out, in order.
func (x *Extension) Bodies(path string) [][]byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([][]byte(nil), x.bodies[path]...)
}

// Connections returns how many connections were made so far.
func (x *Extension) Connections() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.connections
}

// keptBodies bounds the memory of a benchmark.
const keptBodies = 100

func (x *Extension) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	path, below := strings.CutPrefix(r.URL.Path, x.prefix)
	x.mu.Lock()
	route := x.routes[path]
	if len(x.bodies[path]) < keptBodies {
		x.bodies[path] = append(x.bodies[path], body)
	}
	x.mu.Unlock()
	if route == nil || !below {
		http.NotFound(w, r)
		return
	}
	route(w, r)
}

func (x *Extension) discovery(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	response := &hooksv1.DiscoveryResponse{Handlers: x.handlers}
	x.mu.Unlock()
	response.APIVersion, response.Kind = hooks.Discovery.APIVersion(), hooks.Discovery.ResponseKind()
	response.SetStatus(hooksv1.ResponseStatusSuccess)
	Answer(response)(w, r)
}

// Answer serves a response that stays the same.
func Answer(response any) http.HandlerFunc {
	body, err := json.Marshal(response)
	if err != nil {
		panic(err)
	}
	return Raw(string(body))
}

// Raw serves a text.
func Raw(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// Handler describes a handler of a hook, in its first version.
func Handler(name, hook string) hooksv1.ExtensionHandler {
	return hooksv1.ExtensionHandler{
		Name: name, RequestHook: hooksv1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: hook},
	}
}
