package manager

import (
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/slipwayhq/slipway/internal/providerset"
)

// writesAtOnce is how many writes are under way at most: half of what an API server admits by default before it answers
// 429 to all clients (--max-mutating-requests-inflight), people among them.
const writesAtOnce = 100

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
// need none.
func limitWrites(n int) transport.WrapperFunc {
	permits := make(chan struct{}, n)
	return func(next http.RoundTripper) http.RoundTripper { return limitedWrites{next, permits} }
}

type limitedWrites struct {
	next    http.RoundTripper
	permits chan struct{}
}

func (l limitedWrites) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return l.next.RoundTrip(r)
	}
	select {
	case l.permits <- struct{}{}:
	case <-r.Context().Done():
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, r.Context().Err()
	}
	defer func() { <-l.permits }()
	return l.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (l limitedWrites) WrappedRoundTripper() http.RoundTripper { return l.next }
