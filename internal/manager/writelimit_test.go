package manager

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// server answers writes when told to, and reads at once.
type server struct {
	url string
	// arrived gets a value for every write; each waits until it can take one from answer.
	arrived, answer chan struct{}
}

func newServer(t *testing.T) server {
	s := server{arrived: make(chan struct{}, 10), answer: make(chan struct{})}
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			s.arrived <- struct{}{}
			<-s.answer
		}
	}))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func TestWritesWaitForEachOther(t *testing.T) {
	const at, all = 2, 5
	s := newServer(t)
	wrap := limitWrites(at)
	var clients sync.WaitGroup
	for range all { // each with a transport of its own, as the manager's clients have
		clients.Go(func() {
			response, err := (&http.Client{Transport: wrap(&http.Transport{})}).Post(s.url, "", strings.NewReader("x"))
			if err != nil {
				t.Error(err)
				return
			}
			_ = response.Body.Close()
		})
	}
	for range at {
		<-s.arrived
	}
	reader := &http.Client{Transport: wrap(http.DefaultTransport)}
	if response, err := reader.Get(s.url); err != nil {
		t.Errorf("a read waits for no write: %v", err)
	} else {
		_ = response.Body.Close()
	}
	for range all - at {
		if len(s.arrived) > 0 {
			t.Errorf("more than %d writes at once", at)
		}
		s.answer <- struct{}{} // one ends, the next comes
		<-s.arrived
	}
	for range at {
		s.answer <- struct{}{}
	}
	clients.Wait()
}

type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

func TestAWriteThatWaitsCanBeGivenUp(t *testing.T) {
	s := newServer(t)
	c := limitWrites(1)(http.DefaultTransport)
	first, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	var client sync.WaitGroup
	client.Go(func() {
		if response, err := c.RoundTrip(first); err == nil {
			_ = response.Body.Close()
		}
	})
	<-s.arrived
	ctx, cancel := context.WithCancel(t.Context())
	b := &body{Reader: strings.NewReader("x")}
	second, err := http.NewRequestWithContext(ctx, http.MethodPatch, s.url, b)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := c.RoundTrip(second); !errors.Is(err, context.Canceled) || !b.closed { //nolint:bodyclose // there is no response
		t.Errorf("%v, body closed: %t", err, b.closed)
	}
	s.answer <- struct{}{}
	client.Wait()
}

// An API server in which writes run out of time gets fewer of them at once, down to one, and more again as they succeed.
func TestOverloadAdmitsFewerWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 8
		var underWay, most atomic.Int32
		took, status := 7*time.Second, http.StatusInternalServerError // "etcdserver: request timed out"
		next := roundTrip(func(r *http.Request) (*http.Response, error) {
			most.Store(max(most.Load(), underWay.Add(1)))
			defer underWay.Add(-1)
			time.Sleep(took)
			return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
		})
		limited := limitWrites(n)(next)
		round := func(writes int) int32 {
			most.Store(0)
			var all sync.WaitGroup
			for range writes {
				all.Go(func() {
					r, _ := http.NewRequestWithContext(t.Context(), http.MethodPatch, "https://api", nil)
					_, _ = limited.RoundTrip(r)
				})
			}
			all.Wait()
			return most.Load()
		}
		if got := round(3 * n); got != n {
			t.Errorf("at first %d writes are under way at once, want %d", got, n)
		}
		if got := round(3 * n); got != 1 {
			t.Errorf("of an API server that is overloaded %d writes are under way at once, want one", got)
		}
		status = http.StatusConflict
		round(n)
		if got := round(3 * n); got != n {
			t.Errorf("afterwards %d writes are under way at once, want %d", got, n)
		}
		took, status = time.Second, http.StatusInternalServerError
		round(n)
		if got := round(3 * n); got != n {
			t.Errorf("after failures that came at once %d writes are under way at once, want %d", got, n)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
