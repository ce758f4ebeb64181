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

// writesAtOnce limits concurrent writes to half of the number at which an API server starts to return 429 to
// all clients by default (--max-mutating-requests-inflight).
const writesAtOnce = 100

// lateFailure is the minimum duration of a failed write that indicates an overloaded API server, because
// etcd, a webhook or the request itself timed out.
const lateFailure = 5 * time.Second

// limitWrites limits the writes of all identities together. [Run] calls it before it creates the manager.
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

// limitWrites limits the concurrent writes of all clients with the same wrapper to n. Reads and watches are
// not limited. While the API server is overloaded, the limit is lower, because retries of timed-out requests
// would prolong the overload.
func limitWrites(n int) transport.WrapperFunc {
	limit := &writeLimit{permits: make(chan struct{}, n)}
	return func(next http.RoundTripper) http.RoundTripper { return limitedWrites{next, limit, time.Now} }
}

// writeLimit holds the permits of concurrent writes. Each late failure withholds one permit, down to one, and
// each success restores one.
type writeLimit struct {
	permits chan struct{}

	mu       sync.Mutex
	withheld int
}

// release returns the permit of a finished write.
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

// limitedWrites is the transport of the manager's clients, which waits for a permit before each write.
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
			_ = r.Body.Close() // required of a RoundTripper
		}
		return nil, r.Context().Err()
	}
	began := l.now()
	resp, err := l.next.RoundTrip(r)
	failed := err != nil && !errors.Is(err, context.Canceled) || err == nil && resp.StatusCode >= http.StatusInternalServerError
	l.limit.release(failed && l.now().Sub(began) >= lateFailure, err == nil && !failed)
	return resp, err
}

// WrappedRoundTripper lets client-go find the wrapped transport.
func (l limitedWrites) WrappedRoundTripper() http.RoundTripper { return l.next }
