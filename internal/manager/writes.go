package manager

import (
	"net/http"

	"k8s.io/client-go/transport"
)

// writesAtOnce is how many writes are under way at most: half of what an API server takes by default before it answers
// 429 to everybody (--max-mutating-requests-inflight), people among them.
const writesAtOnce = 100

// atMost lets n writes through at once, over all clients with the same wrapper; the others wait. Reads and watches do not.
func atMost(n int) transport.WrapperFunc {
	slots := make(chan struct{}, n)
	return func(next http.RoundTripper) http.RoundTripper { return bounded{next, slots} }
}

type bounded struct {
	next  http.RoundTripper
	slots chan struct{}
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return b.next.RoundTrip(r)
	}
	select {
	case b.slots <- struct{}{}:
	case <-r.Context().Done():
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper has to
		}
		return nil, r.Context().Err()
	}
	defer func() { <-b.slots }()
	return b.next.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport below.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }
