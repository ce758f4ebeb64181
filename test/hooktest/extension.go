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

// Options configures the server of an extension. The zero value is a healthy one.
type Options struct {
	// Authority that issues the server certificate; nil for a new one.
	Authority *Authority
	// Certificate that the server presents.
	Certificate Certificate
	// TLS, if set, modifies the TLS configuration of the server.
	TLS func(*tls.Config)
	// At, if set, is the listen address.
	At string
	// Prefix, if set, is the base path of all URLs, without a trailing slash.
	Prefix string
}

// Extension is a Runtime Extension that runs in a test, as a TLS server on the loopback address.
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

// Start serves an extension until the test ends. It responds to discovery and has no handlers yet.
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

// ExtensionConfig returns the ExtensionConfig of the extension as the API server stores it.
func (x *Extension) ExtensionConfig(name string) *runtimev1.ExtensionConfig {
	return &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: runtimev1.ExtensionConfigSpec{ClientConfig: runtimev1.ClientConfig{URL: x.URL + x.prefix,
			CABundle: x.Authority.PEM}},
	}
}

// Handle adds a handler to the discovery response, and serves it.
func (x *Extension) Handle(h hooksv1.ExtensionHandler, serve http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.handlers = append(x.handlers, h)
	id, err := hooks.ParseID(h.RequestHook.APIVersion, h.RequestHook.Hook)
	if err == nil {
		x.routes[id.Path(h.Name)] = serve
	}
}

// Serve replaces the handler function of a path, such as the discovery path.
func (x *Extension) Serve(path string, serve http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.routes[path] = serve
}

// Bodies returns the request bodies received at a path, without the prefix, in order.
func (x *Extension) Bodies(path string) [][]byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([][]byte(nil), x.bodies[path]...)
}

// Connections returns the number of connections accepted so far.
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
	Respond(response)(w, r)
}

// Respond serves a fixed response.
func Respond(response any) http.HandlerFunc {
	body, err := json.Marshal(response)
	if err != nil {
		panic(err)
	}
	return Raw(string(body))
}

// Raw serves a fixed body.
func Raw(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// Handler describes a handler of a hook in its first version.
func Handler(name, hook string) hooksv1.ExtensionHandler {
	return hooksv1.ExtensionHandler{
		Name: name, RequestHook: hooksv1.GroupVersionHook{APIVersion: hooks.Discovery.APIVersion(), Hook: hook},
	}
}
