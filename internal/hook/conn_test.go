package hook

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/test/hooktest"
)

// RT-10: an answer whose end comes only because no one waits any longer is not an answer.
func TestEndAfterTheTimeout(t *testing.T) {
	e, err := EndpointOf(runtimev1.ClientConfig{URL: "https://host"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewConn(e, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		within context.Context
		want   string
	}{
		"in time":  {within: t.Context()},
		"too late": {within: expired(t), want: reasonTimeout},
	} {
		_, err := c.read(tt.within, &http.Response{Body: io.NopCloser(strings.NewReader("  "))})
		if f := fault.As(err); (f != nil) != (tt.want != "") || f != nil && f.Reason != tt.want {
			t.Errorf("%s: want %q, got %v", name, tt.want, err)
		}
	}
}

func expired(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	t.Cleanup(cancel)
	return ctx
}

// connect returns the connections to an extension that serves as h says.
func connect(t *testing.T, h http.HandlerFunc) *Conn {
	t.Helper()
	x := hooktest.Start(t, hooktest.Options{})
	x.Serve("/hook", h)
	c, err := NewConn(Endpoint{URL: x.URL, CA: string(x.Authority.PEM)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// RT-10, RT-12: a request is sent a second time where a kept connection is closed before a byte of the answer came, and
// in no other case.
func TestWhenARequestIsSentAgain(t *testing.T) {
	hangUp := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	fine := hooktest.Raw("{}")
	tests := map[string]struct {
		reason   string
		answers  []http.HandlerFunc // to the requests, as they come; the first is that of another call before
		arrivals int
		err      string
	}{
		"a kept connection":        {answers: []http.HandlerFunc{fine, hangUp, fine}, arrivals: 3},
		"then a new one":           {reason: "over a new connection it is sent once", answers: []http.HandlerFunc{fine, hangUp, hangUp}, arrivals: 3, err: reasonLost},
		"half an answer":           {reason: "somebody has begun to answer", answers: []http.HandlerFunc{fine, hooktest.Cut(false)}, arrivals: 2, err: reasonLost},
		"half an answer and reset": {answers: []http.HandlerFunc{fine, hooktest.Cut(true)}, arrivals: 2, err: reasonLost},
		"an error":                 {reason: "the answer was no", answers: []http.HandlerFunc{fine, hooktest.Status(http.StatusServiceUnavailable)}, arrivals: 2, err: reasonHTTPStatus},
	}
	for name, tt := range tests {
		var arrivals atomic.Int32
		c := connect(t, func(w http.ResponseWriter, r *http.Request) {
			tt.answers[int(arrivals.Add(1))-1](w, r)
		})
		if _, err := c.Post(t.Context(), WireRequest{Path: "/hook"}); err != nil {
			t.Fatal(err)
		}
		_, err := c.Post(t.Context(), WireRequest{Path: "/hook"})
		if f := fault.As(err); (f != nil) != (tt.err != "") || f != nil && f.Reason != tt.err {
			t.Errorf("%s (%s): got %v, want %q", name, tt.reason, err, tt.err)
		}
		if n := int(arrivals.Load()); n != tt.arrivals {
			t.Errorf("%s (%s): %d requests arrived, want %d", name, tt.reason, n, tt.arrivals)
		}
	}
}

// RT-29: the timeout bounds the exchange, and the extension knows it.
func TestTimeoutIsSent(t *testing.T) {
	queries := make(chan string, 1)
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		queries <- r.URL.RawQuery
		if r.URL.Query().Get("timeout") == "1s" {
			hooktest.Silent(w, r)
			return
		}
		hooktest.Raw("{}")(w, r)
	})
	for name, tt := range map[string]struct {
		timeout     time.Duration
		query, want string
	}{
		"seconds":    {timeout: 10 * time.Second, query: "timeout=10s"},
		"minutes":    {timeout: 90 * time.Second, query: "timeout=1m30s"},
		"none":       {},
		"it is over": {timeout: time.Second, query: "timeout=1s", want: reasonTimeout},
	} {
		_, err := c.Post(t.Context(), WireRequest{Path: "/hook", Timeout: tt.timeout})
		if f := fault.As(err); (f != nil) != (tt.want != "") || f != nil && f.Reason != tt.want {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
		if got := <-queries; got != tt.query {
			t.Errorf("%s: ?%s was sent, want ?%s", name, got, tt.query)
		}
	}
}

// RT-15: who never gets a connection is told apart from who gets no answer.
func TestNoConnectionInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never speaks TLS
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	host := listener.Addr().String()
	c, err := NewConn(Endpoint{URL: "https://" + host}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Post(t.Context(), WireRequest{Path: "/hook", Timeout: 50 * time.Millisecond})
	if f := fault.As(err); f == nil || !unconnected(f.Reason) || f.Message != "connecting to "+host+" timed out" {
		t.Errorf("got %v", err)
	}
}
