package answers

import (
	"io"
	"net/http"
	"sync"

	"github.com/slipwayhq/slipway/internal/fault"
)

// ReasonTooLarge is the reason of the fault for an answer beyond the limits.
const ReasonTooLarge = "AnswerTooLarge"

// Limits of what an API may answer.
type Limits struct {
	// Bytes of one answer, unpacked, and Objects of one list.
	Bytes, Objects int
	// WatchedBytes and WatchedObjects are what the watch of a kind may send after its list. Beyond them the watch ends, and
	// the kind is listed again, which replaces what was cached.
	WatchedBytes, WatchedObjects int
}

// DefaultLimits are those for the API of a workload cluster.
func DefaultLimits() Limits {
	return Limits{Bytes: 64 << 20, Objects: 20_000, WatchedBytes: 256 << 20, WatchedObjects: 100_000}
}

// bounded is the transport of [Bound].
type bounded struct {
	next   http.RoundTripper
	limits Limits

	mu sync.Mutex
	// watched is what watches have sent since the last list, by path.
	watched map[string]*amount
}

// amount of what was read.
type amount struct {
	mu             sync.Mutex
	bytes, objects int
}

// Bound returns a transport whose answers end with a fault where they are beyond the limits. It belongs between what unpacks
// answers and what decodes them.
func Bound(next http.RoundTripper, l Limits) http.RoundTripper { return newBounded(next, l) }

func newBounded(next http.RoundTripper, l Limits) *bounded {
	return &bounded{next: next, limits: l, watched: map[string]*amount{}}
}

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	watches := query.Get("watch") == "true" || query.Get("watch") == "1"
	if !watches || query.Get("sendInitialEvents") == "true" {
		b.listed(r.URL.Path)
	}
	body := &boundedBody{ReadCloser: resp.Body, most: amount{bytes: b.limits.Bytes, objects: b.limits.Objects}, read: &amount{}}
	if watches && resp.StatusCode == http.StatusOK {
		body.most = amount{bytes: b.limits.WatchedBytes, objects: b.limits.WatchedObjects}
		body.read = b.watching(r.URL.Path)
	}
	body.count = newCounter(resp.Header.Get("Content-Type"), watches)
	resp.Body = body
	return resp, nil
}

// listed forgets what watches of a kind have sent.
func (b *bounded) listed(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watched, path)
}

func (b *bounded) watching(path string) *amount {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watched[path] == nil {
		b.watched[path] = &amount{}
	}
	return b.watched[path]
}

// boundedBody is an answer that ends with a fault beyond the limits.
type boundedBody struct {
	io.ReadCloser
	count counter
	most  amount
	read  *amount
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.mu.Lock()
	defer b.read.mu.Unlock()
	b.read.bytes += n
	b.read.objects += b.count.feed(p[:n])
	if b.read.bytes > b.most.bytes || b.read.objects > b.most.objects {
		return 0, fault.New(fault.Unreachable, ReasonTooLarge,
			"The API server of the workload cluster answers with more than %d MiB or %d objects at once, which is not read", b.most.bytes>>20, b.most.objects)
	}
	return n, err
}
