package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/extension"
	"github.com/slipwayhq/slipway/sdk/extension/servingcert"
)

const (
	// hookTimeout is how long each handler may take.
	hookTimeout = 2 * time.Second
	// longAnswer bounds an answer that does not end, in bytes.
	longAnswer = 64 << 20
)

// liar is an extension that answers the lifecycle hooks of all clusters. While it lies, only every other call gets an answer that
// is one.
type liar struct {
	server *http.Server
	url    string
	ca     []byte
	honest http.Handler

	mu   sync.Mutex
	dice *rand.Rand
	lies bool
	told map[string]int
}

// newLiar starts it on the loopback interface. It is honest.
func newLiar(seed uint64) (*liar, error) {
	l := &liar{dice: rand.New(rand.NewPCG(seed, 1)), told: map[string]int{}}
	x, err := extension.New(
		extension.On("create", hooksv1.BeforeClusterCreate, func(_ context.Context, _ *hooksv1.BeforeClusterCreateRequest, r *hooksv1.BeforeClusterCreateResponse) {
			r.SetRetryAfterSeconds(l.delay())
		}).WithTimeout(hookTimeout),
		extension.On("initialized", hooksv1.AfterControlPlaneInitialized, func(context.Context, *hooksv1.AfterControlPlaneInitializedRequest, *hooksv1.AfterControlPlaneInitializedResponse) {
		}).WithTimeout(hookTimeout),
		extension.On("delete", hooksv1.BeforeClusterDelete, func(_ context.Context, _ *hooksv1.BeforeClusterDeleteRequest, r *hooksv1.BeforeClusterDeleteResponse) {
			r.SetRetryAfterSeconds(l.delay())
		}).WithTimeout(hookTimeout),
	)
	if err != nil {
		return nil, err
	}
	l.honest = x.Handler(slog.New(slog.DiscardHandler))
	made, err := servingcert.New("127.0.0.1")
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(made.Certificate, made.Key)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	if err != nil {
		return nil, err
	}
	l.url, l.ca = "https://"+listener.Addr().String(), made.CA
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = l.server.Serve(listener) }()
	return l, nil
}

// Close ends it.
func (l *liar) Close() error {
	if err := l.server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// register makes it known to the management cluster.
func (l *liar) register(ctx context.Context, c client.Client) error {
	return c.Create(ctx, &runtimev1.ExtensionConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "liar"},
		Spec:       runtimev1.ExtensionConfigSpec{ClientConfig: runtimev1.ClientConfig{URL: l.url, CABundle: l.ca}, NamespaceSelector: &metav1.LabelSelector{}},
	})
}

func (l *liar) lie(lies bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = lies
}

// delay is after how many seconds a hook wants to be called again.
func (l *liar) delay() int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lies && l.dice.IntN(3) == 0 {
		return 1
	}
	return 0
}

// answers that are none.
func answers() map[string]http.HandlerFunc {
	text := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, s)
		}
	}
	return map[string]http.HandlerFunc{
		"error":        func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"not found":    http.NotFound,
		"half":         text(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","ki`),
		"another kind": text(`{"apiVersion":"v1","kind":"Pod","status":{}}`),
		"nothing":      text(""),
		"long message": text(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Failure","message":"` + strings.Repeat("x", 1<<20) + `"}`),
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
		"hang": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"cut":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no end": func(w http.ResponseWriter, r *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for n := 0; n < longAnswer && r.Context().Err() == nil; n += len(chunk) {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
	}
}

// ServeHTTP implements http.Handler.
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	all := answers()
	names := slices.Sorted(maps.Keys(all)) // so that the seed decides
	l.mu.Lock()
	what := ""
	if l.lies && l.dice.IntN(2) == 0 {
		what = names[l.dice.IntN(len(names))]
		l.told[what]++
	}
	l.mu.Unlock()
	if what == "" {
		l.honest.ServeHTTP(w, r)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, longAnswer)) // as a server that reads before it answers
	all[what](w, r)
}

// lied counts the lies.
func (l *liar) lied() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.told)
}
