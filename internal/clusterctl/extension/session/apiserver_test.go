package session_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/clusterctl/extension/local"
)

// fakeServer passes requests for a Service's proxy on to an extension, as an API server does.
type fakeServer struct {
	*httptest.Server
	paths []string
}

func apiServer(t *testing.T, x *local.Extension) *fakeServer {
	t.Helper()
	s := &fakeServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.paths = append(s.paths, r.URL.Path)
		_, path, ok := strings.Cut(r.URL.Path, "/proxy/prefix")
		if !ok {
			http.NotFound(w, r)
			return
		}
		response, err := x.Client.Post(x.URL.String()+path, "application/json", r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = response.Body.Close() }()
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	}))
	t.Cleanup(s.Close)
	return s
}
