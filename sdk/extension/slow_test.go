package extension_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/sdk/extension"
)

// serveBriefly serves an extension that waits for a request for half a second, and returns a client of HTTP/1.1 or HTTP/2.
func serveBriefly(t *testing.T, x *extension.Extension, http2 bool) (url string, c *http.Client) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	s := serve(t, x, extension.Config{CAFile: ca, ReadTimeout: 500 * time.Millisecond})
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	c = dial(t, pem)
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = http2
	return s.url, c
}

// RT-23: who begins a request and does not end it is not waited for without limit, whatever is served there.
func TestServeSlowRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		path  string
		http2 bool
		code  int
	}{
		"hook":            {path: group + "beforeclustercreate/before-create", code: http.StatusRequestTimeout},
		"hook, HTTP/2":    {path: group + "beforeclustercreate/before-create", http2: true, code: http.StatusRequestTimeout},
		"nothing":         {path: "/none", code: http.StatusNotFound},
		"nothing, HTTP/2": {path: "/none", http2: true, code: http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, c := serveBriefly(t, newExtension(t, create(answerNothing)), tc.http2)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for {
				code, err := drip(ctx, c, url+tc.path)
				if ctx.Err() != nil {
					t.Fatalf("nobody ended the request: %v", err)
				}
				if err != nil {
					continue // a busy machine may not even connect in time
				}
				if code != tc.code {
					t.Errorf("got %d, want %d", code, tc.code)
				}
				return
			}
		})
	}
}

// drip posts a body that has a beginning only.
func drip(ctx context.Context, c *http.Client, url string) (int, error) {
	body, rest := io.Pipe()
	defer context.AfterFunc(ctx, func() { _ = rest.Close() })()
	defer func() { _ = rest.Close() }()
	go func() { _, _ = rest.Write([]byte(`{"apiVersion":`)) }()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return 0, err
	}
	answer, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// RT-23: the time in which a request has to arrive is not the time of its handler.
func TestServeSlowHandlers(t *testing.T) {
	ended := make(chan error, 1)
	x := newExtension(t, create(func(ctx context.Context, _ *hooksv1.BeforeClusterCreateRequest, _ *hooksv1.BeforeClusterCreateResponse) {
		<-ctx.Done()
		ended <- ctx.Err()
	}))
	url, c := serveBriefly(t, x, false)
	for deadline := time.Now().Add(30 * time.Second); ; {
		r, err := c.Post(url+group+"beforeclustercreate/before-create?timeout=2s", "application/json",
			strings.NewReader(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest"}`))
		if err == nil {
			_ = r.Body.Close()
		}
		select {
		case err := <-ended:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the handler was ended by %v, want its own timeout", err)
			}
			return
		default:
			if time.Now().After(deadline) {
				t.Fatalf("the handler is not reached: %v", err)
			}
		}
	}
}
