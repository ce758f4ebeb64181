package soak

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/test/bench/harness"
)

// endless bounds the response without end, in bytes.
const endless = 64 << 20

// faultyExtension implements the lifecycle hooks of all clusters. While it is faulty, half of its responses are invalid.
type faultyExtension struct {
	server *httptest.Server
	valid  http.Handler

	mu      sync.Mutex
	random  *rand.Rand
	faulty  bool
	invalid map[string]int // sent responses
}

// startExtension starts an extension on the loopback interface. It is not faulty.
func startExtension(seed uint64) *faultyExtension {
	const timeout = 2 * time.Second
	e := &faultyExtension{random: rand.New(rand.NewPCG(seed, 1)), invalid: map[string]int{}}
	x := harness.Must(extension.New(
		extension.On("create", hooksv1.BeforeClusterCreate, func(_ context.Context, _ *hooksv1.BeforeClusterCreateRequest, r *hooksv1.BeforeClusterCreateResponse) {
			r.SetRetryAfterSeconds(e.delay())
		}).WithTimeout(timeout),
		extension.On("initialized", hooksv1.AfterControlPlaneInitialized, func(context.Context, *hooksv1.AfterControlPlaneInitializedRequest, *hooksv1.AfterControlPlaneInitializedResponse) {
		}).WithTimeout(timeout),
		extension.On("delete", hooksv1.BeforeClusterDelete, func(_ context.Context, _ *hooksv1.BeforeClusterDeleteRequest, r *hooksv1.BeforeClusterDeleteResponse) {
			r.SetRetryAfterSeconds(e.delay())
		}).WithTimeout(timeout),
	))
	e.valid = x.Handler(slog.New(slog.DiscardHandler))
	e.server = httptest.NewUnstartedServer(e)
	e.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	e.server.StartTLS()
	return e
}

// close also ends responses that hang.
func (e *faultyExtension) close() {
	e.server.CloseClientConnections()
	e.server.Close()
}

// register creates the ExtensionConfig.
func (e *faultyExtension) register(ctx context.Context, c client.Client) {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
	harness.Checkf(c.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": map[string]any{"name": "faulty"},
		"spec": map[string]any{
			"clientConfig":      map[string]any{"url": e.server.URL, "caBundle": base64.StdEncoding.EncodeToString(ca)},
			"namespaceSelector": map[string]any{},
		},
	}}), "create the ExtensionConfig")
}

func (e *faultyExtension) setFaulty(faulty bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faulty = faulty
}

// delay is the number of seconds after which a hook is to be called again.
func (e *faultyExtension) delay() int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.faulty && e.random.IntN(3) == 0 {
		return 1
	}
	return 0
}

// invalidResponses are handlers by the names in the report.
func invalidResponses() map[string]http.HandlerFunc {
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, s)
		}
	}
	const version = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",`
	return map[string]http.HandlerFunc{
		"error":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"not found":    http.NotFound,
		"half":         text(version + `"ki`),
		"another kind": text(`{"apiVersion":"v1","kind":"Pod","status":{}}`),
		"nothing":      text(""),
		"long message": text(version + `"status":"Failure","message":"` + strings.Repeat("x", 1<<20) + `"}`),
		"redirect":     http.RedirectHandler("https://127.0.0.1:1/", http.StatusTemporaryRedirect).ServeHTTP,
		"hang":         func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cut":          func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no end": func(w http.ResponseWriter, r *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for n := 0; n < endless && r.Context().Err() == nil; n += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
	}
}

func (e *faultyExtension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := invalidResponses()
	names := slices.Sorted(maps.Keys(all)) // so that the seed determines the response
	e.mu.Lock()
	name := ""
	if e.faulty && e.random.IntN(2) == 0 {
		name = names[e.random.IntN(len(names))]
		e.invalid[name]++
	}
	e.mu.Unlock()
	if name == "" {
		e.valid.ServeHTTP(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, endless)) // as servers do before they respond
	all[name](w, r)
}

func (e *faultyExtension) counts() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.invalid)
}
