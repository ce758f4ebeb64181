package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// connection is one whose client showed a verified certificate of that name.
func connection(name string) *tls.ConnectionState {
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}}}
}

// S5: only the API server is served, where it has a certificate.
func TestCallers(t *testing.T) {
	for name, test := range map[string]struct {
		caller string
		from   *tls.ConnectionState
		want   int
	}{
		"the API server":     {"api", connection("api"), http.StatusOK},
		"nobody":             {"api", &tls.ConnectionState{}, http.StatusUnauthorized},
		"plain HTTP":         {"api", nil, http.StatusUnauthorized},
		"another of its own": {"api", connection("alice"), http.StatusUnauthorized},
		"an unverified certificate": {"api", &tls.ConnectionState{
			PeerCertificates: []*x509.Certificate{{Subject: pkix.Name{CommonName: "api"}}},
		}, http.StatusUnauthorized},
		"an API server of others": {"", nil, http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader("{}"))
		r.TLS = test.from
		w := httptest.NewRecorder()
		newGate(test.caller).before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), 10).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// endless is a body whose length is not known.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// S5: no handler reads more than its limit, whatever the client says of the length.
func TestBodiesAreBounded(t *testing.T) {
	read := int64(0)
	handler := newGate("").before(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { read, _ = io.Copy(io.Discard, r.Body) }), 1000)
	serve := func(body io.Reader, length int64) int {
		read = 0
		r := httptest.NewRequest(http.MethodPost, "/convert", body)
		r.ContentLength = length
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	if code := serve(strings.NewReader(strings.Repeat("x", 1000)), 1000); code != http.StatusOK || read != 1000 {
		t.Errorf("as much as is allowed: %d, %d bytes", code, read)
	}
	if code := serve(endless{}, 1001); code != http.StatusRequestEntityTooLarge || read != 0 {
		t.Errorf("more: %d, %d bytes", code, read)
	}
	if serve(endless{}, -1); read > 1000 {
		t.Errorf("of an unknown length: %d bytes", read)
	}
}

// S5: what all requests have in their bodies at the same time is bounded; small ones run beside large ones.
func TestRequestsInFlightAreBounded(t *testing.T) {
	g := newGate("")
	began, end := make(chan struct{}), make(chan struct{})
	slow := g.before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { began <- struct{}{}; <-end }), maxConversionBytes)
	done := make(chan int)
	large := func() *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/convert", endless{})
		r.ContentLength = maxConversionBytes - 1000
		return r
	}
	for range 2 {
		go func() {
			w := httptest.NewRecorder()
			slow.ServeHTTP(w, large())
			done <- w.Code
		}()
		<-began
	}
	if g.bodies.TryAcquire(maxConversionBytes - 1000) {
		t.Error("there is room for a third")
	}
	w := httptest.NewRecorder()
	g.before(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), maxAdmissionBytes).
		ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/validate", strings.NewReader("{}")))
	if w.Code != http.StatusOK {
		t.Errorf("a small one beside them: %d", w.Code)
	}
	close(end)
	for range 2 {
		if code := <-done; code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
	if !g.bodies.TryAcquire(maxBytesInFlight) {
		t.Error("what has ended counts")
	}
}
