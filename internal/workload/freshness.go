package workload

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// minWatchDuration is how long a watch must be open to count: a watch whose events cannot be decoded ends at once.
const minWatchDuration = 10 * time.Second

// freshness records when the cached objects of a kind were last known to be current. Each cluster has one for its
// Nodes, which [Health.NodesRead] reports. It is needed because a cache returns its objects even if the API server no
// longer serves the kind. The zero value is ready for use. The cache of the connection notes each decoded Node, and
// [watchRecorder] each open watch.
type freshness struct {
	mu sync.Mutex
	// read is when an object was last decoded, or when a watch that counted ended.
	read time.Time
	// open holds the open watches with their start times.
	open map[*watch]time.Time
}

// Note records that an object of the kind was decoded.
func (f *freshness) Note(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = now
}

// Begin records the first use, from which the cache has time to sync.
func (f *freshness) Begin(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read.IsZero() {
		f.read = now
	}
}

// At returns when the cache was last known to be current; zero if it was never used. filled means that the cache has
// synced, so that an open watch delivers every change. [Clusters.Health] and the reads of cached Nodes compare it with
// the time.
func (f *freshness) At(now time.Time, filled bool) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if filled {
		for _, since := range f.open {
			if now.Sub(since) >= minWatchDuration {
				return now
			}
		}
	}
	return f.read
}

// watchRecorder is a transport that records the open watches of a kind.
type watchRecorder struct {
	Next http.RoundTripper
	// Path is the URL path of the kind.
	Path      string
	Freshness *freshness
	// Filled reports whether the cache has synced.
	Filled func() bool
	Now    func() time.Time
}

func (w *watchRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.Next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || r.URL.Path != w.Path || !isWatch(r) {
		return resp, err
	}
	b := &watch{ReadCloser: resp.Body, recorder: w}
	w.Freshness.mu.Lock()
	defer w.Freshness.mu.Unlock()
	if w.Freshness.open == nil {
		w.Freshness.open = map[*watch]time.Time{}
	}
	w.Freshness.open[b] = w.Now()
	resp.Body = b
	return resp, nil
}

func isWatch(r *http.Request) bool {
	query := r.URL.Query()
	return query.Get("watch") == "true" || query.Get("watch") == "1"
}

// watch is the response body of an open watch.
type watch struct {
	io.ReadCloser
	recorder *watchRecorder
}

func (b *watch) Close() error {
	filled, now, f := b.recorder.Filled(), b.recorder.Now(), b.recorder.Freshness
	f.mu.Lock()
	since, open := f.open[b]
	delete(f.open, b)
	if open && filled && now.Sub(since) >= minWatchDuration {
		f.read = now
	}
	f.mu.Unlock()
	return b.ReadCloser.Close()
}
