package manager

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// writesAtOnce is how many writes are under way at most: half of what an API server admits by default before it answers
// 429 to all clients (--max-mutating-requests-inflight), people among them.
const writesAtOnce = 100

// lateFailure is how long a write takes at least whose failure counts as one of an API server that is overloaded: etcd, a webhook or the request
// itself ran out of time.
const lateFailure = 5 * time.Second

// limitWrites bounds the writes of all identities together.
func (c *Config) limitWrites() {
	limit := limitWrites(writesAtOnce)
	c.REST.Wrap(limit)
	own := map[providerset.Name]*rest.Config{}
	for set, access := range c.Identities {
		own[set] = rest.CopyConfig(access)
		own[set].WarningHandler = c.REST.WarningHandler
		own[set].Wrap(limit)
	}
	c.Identities = own
}

// limitWrites admits n writes at once, over all clients with the same wrapper; the others wait for a permit. Reads and watches
// need none. While the API server is overloaded, fewer are admitted: retries of what ran out of time would keep it so.
func limitWrites(n int) transport.WrapperFunc {
	limit := &writeLimit{permits: make(chan struct{}, n)}
	return func(next http.RoundTripper) http.RoundTripper { return limitedWrites{next, limit, time.Now} }
}

// writeLimit are the permits of writes that are under way. Each late failure withholds one, down to the last; each success gives one back.
type writeLimit struct {
	permits chan struct{}

	mu       sync.Mutex
	withheld int
}

// release gives the permit of a write back.
func (l *writeLimit) release(late, good bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case late && l.withheld < cap(l.permits)-1:
		l.withheld++
		return
	case good && l.withheld > 0:
		l.withheld--
		<-l.permits
	}
	<-l.permits
}

type limitedWrites struct {
	next  http.RoundTripper
	limit *writeLimit
	now   func() time.Time
}

func (l limitedWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return l.next.RoundTrip(r)
	}
	select {
	case l.limit.permits <- struct{}{}:
	case <-r.Context().Done():
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, r.Context().Err()
	}
	began := l.now()
	resp, err := l.next.RoundTrip(r)
	failed := err != nil && !errors.Is(err, context.Canceled) || err == nil && resp.StatusCode >= http.StatusInternalServerError
	l.limit.release(failed && l.now().Sub(began) >= lateFailure, err == nil && !failed)
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (l limitedWrites) WrappedRoundTripper() http.RoundTripper { return l.next }
