package extensiontools_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/slipwayhq/slipway/internal/extensiontools"
)

// RT-23: a call reaches the extension with its trace, and from one moment on another extension.
func TestProxy(t *testing.T) {
	serve := func(name string) (*url.URL, *http.Client) {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %s %s %s %s", name, body, r.Header.Get("Traceparent"), r.Header.Get("Tracestate"), r.Header.Get("Authorization"))
		}))
		t.Cleanup(s.Close)
		to, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		return to, s.Client()
	}
	to, by := serve("one")
	p, err := extensiontools.StartProxy(extensiontools.ProxyOptions{Listen: "127.0.0.1:0", Upstream: to, Client: by})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(p.CA)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(c.CloseIdleConnections)
	post := func() string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("traceparent", "00-a-b-01")
		r.Header.Set("tracestate", "x=y")
		r.Header.Set("authorization", "secret")
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := post(); got != "one body 00-a-b-01 x=y " {
		t.Errorf("got %q", got)
	}
	p.SwitchTo(serve("two"))
	if got := post(); got != "two body 00-a-b-01 x=y " {
		t.Errorf("got %q", got)
	}
}
