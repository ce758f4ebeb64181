package answers

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// lasting is how long a watch has to be open to count: one whose events cannot be read ends at once.
const lasting = 10 * time.Second

// Freshness records when what is cached of a kind was last known to be current. A cache returns what it has for as long as
// there is one, whether or not the API server still serves the kind. The zero value is ready for use.
type Freshness struct {
	mu sync.Mutex
	// read is when an object was last decoded, or a watch that lasted ended.
	read time.Time
	// open are the watches, with the time of their beginning.
	open map[*watch]time.Time
}

// Note records that the kind was read.
func (f *Freshness) Note(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = now
}

// Begin records the first use, from which on objects have time to arrive.
func (f *Freshness) Begin(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read.IsZero() {
		f.read = now
	}
}

// At returns when what is cached was last known to be current; zero: it was never used. filled: the cache is, so that a watch
// which is open brings every change.
func (f *Freshness) At(now time.Time, filled bool) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if filled {
		for _, since := range f.open {
			if now.Sub(since) >= lasting {
				return now
			}
		}
	}
	return f.read
}

// Watches is a transport that records the watches of a kind.
type Watches struct {
	Next http.RoundTripper
	// Path of the kind.
	Path string
	Of   *Freshness
	// Filled reports whether the cache is filled.
	Filled func() bool
	Now    func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (w *Watches) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.Next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || r.URL.Path != w.Path || !isWatch(r) {
		return resp, err
	}
	b := &watch{ReadCloser: resp.Body, of: w}
	w.Of.mu.Lock()
	defer w.Of.mu.Unlock()
	if w.Of.open == nil {
		w.Of.open = map[*watch]time.Time{}
	}
	w.Of.open[b] = w.Now()
	resp.Body = b
	return resp, nil
}

func isWatch(r *http.Request) bool {
	query := r.URL.Query()
	return query.Get("watch") == "true" || query.Get("watch") == "1"
}

// watch is the body of one that is open.
type watch struct {
	io.ReadCloser
	of *Watches
}

// Close implements io.Closer.
func (b *watch) Close() error {
	filled, now, f := b.of.Filled(), b.of.Now(), b.of.Of
	f.mu.Lock()
	since, open := f.open[b]
	delete(f.open, b)
	if open && filled && now.Sub(since) >= lasting {
		f.read = now
	}
	f.mu.Unlock()
	return b.ReadCloser.Close()
}
