package ui

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestHubCoalesces(t *testing.T) {
	h := newHub()
	a, _ := h.subscribe("fleet")
	b, _ := h.subscribe("cluster/x", "object/y")
	for range 100 {
		h.publish("fleet", "cluster/z")
	}
	h.publish("object/y")
	if len(a.pending) != 1 || h.id(a) != 100 {
		t.Errorf("the fleet has %d events, the last is %d", len(a.pending), h.id(a))
	}
	if len(b.pending) != 1 || h.id(b) != 101 {
		t.Errorf("the object has %d events, the last is %d", len(b.pending), h.id(b))
	}
	h.unsubscribe(a)
	h.publish("fleet")
	if h.id(a) != 100 {
		t.Error("a closed stream received a change")
	}
}

func TestHubLimitsStreams(t *testing.T) {
	h := newHub()
	for range maxStreams {
		if _, ok := h.subscribe("fleet"); !ok {
			t.Fatal("a stream was refused too early")
		}
	}
	w := httptest.NewRecorder()
	h.serve(w, httptest.NewRequest(http.MethodGet, "/", nil), "fleet")
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d", w.Code)
	}
}

// openStream opens an event stream and returns its lines.
func openStream(t *testing.T, h *hub, last string) *bufio.Scanner {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, "fleet") }))
	server.Config.ReadTimeout, server.Config.WriteTimeout = quietPeriod/2, quietPeriod/2
	server.Start()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); h.close(); server.Close() })
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if got := response.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the type is %q", got)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && lines.Text() != "" { // the greeting
	}
	return lines
}

func readEvent(lines *bufio.Scanner) string {
	var out []string
	for lines.Scan() && lines.Text() != "" {
		out = append(out, lines.Text())
	}
	return strings.Join(out, "|")
}

func TestHubSendsEvents(t *testing.T) {
	h := newHub()
	lines := openStream(t, h, "")
	h.publish("other")
	h.publish("fleet")
	if got := readEvent(lines); got != "id: 2|event: change|data: 2" {
		t.Errorf("the event is %q", got)
	}
}

// The second event comes after the timeouts of the server.
func TestHubOutlivesTimeouts(t *testing.T) {
	h := newHub()
	lines := openStream(t, h, "")
	for _, want := range []string{"id: 1|event: change|data: 1", "id: 2|event: change|data: 2", "id: 3|event: change|data: 3"} {
		h.publish("fleet")
		if got := readEvent(lines); got != want {
			t.Errorf("the event is %q, want %q", got, want)
		}
	}
}

func TestHubResumes(t *testing.T) {
	h := newHub()
	h.publish("fleet")
	h.publish("fleet")
	if got := readEvent(openStream(t, h, "1")); got != "id: 2|event: change|data: 2" {
		t.Errorf("after a missed change the event is %q", got)
	}
}

// deadlineWriter records the write deadlines of a response.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *deadlineWriter) SetWriteDeadline(t time.Time) error {
	w.deadlines = append(w.deadlines, t)
	return nil
}

// A browser that does not read its stream does not hold the connection.
func TestHubLimitsWrites(t *testing.T) {
	h := newHub()
	h.close()
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
	h.serve(w, httptest.NewRequest(http.MethodGet, "/", nil), "fleet")
	if len(w.deadlines) == 0 {
		t.Fatal("a write has no time limit")
	}
	for _, at := range w.deadlines {
		if at.IsZero() || time.Until(at) > writeTimeout {
			t.Errorf("the time limit is %s", at)
		}
	}
}

func TestHubPublishesSource(t *testing.T) {
	h := newHub()
	a, _ := h.subscribe("eu/cluster/x/y")
	b, _ := h.subscribe("eu-2/fleet")
	needs, _ := h.subscribe("eu-2/fleet", "eu/fleet")
	h.publishSource("eu")
	if len(a.pending) != 1 || len(b.pending) != 0 || len(needs.pending) != 1 {
		t.Errorf("events: %d, %d, %d", len(a.pending), len(b.pending), len(needs.pending))
	}
}
