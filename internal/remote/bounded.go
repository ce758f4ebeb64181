package remote

import (
	"io"
	"net/http"
	"sync"

	"github.com/slipwayhq/slipway/internal/fault"
)

// ReasonTooLarge is the reason of the fault for an answer beyond the limits.
const ReasonTooLarge = "AnswerTooLarge"

// limits of what a workload cluster's API may answer: who writes the kubeconfig Secret chooses the API, and every byte and
// object of an answer is memory of this process.
type limits struct {
	// bytes of one answer, unpacked, and objects of one list.
	bytes, objects int
	// watchedBytes and watchedObjects are what the watch of a kind may bring after its list. Beyond them the watch ends,
	// and the kind is listed again, which replaces what was kept.
	watchedBytes, watchedObjects int
}

func defaultLimits() limits {
	return limits{bytes: 64 << 20, objects: 20_000, watchedBytes: 256 << 20, watchedObjects: 100_000}
}

// bounded is a transport whose answers end with a fault where they are beyond the limits. It stands between what unpacks
// answers and what decodes them.
type bounded struct {
	next   http.RoundTripper
	limits limits

	mu sync.Mutex
	// watched is what watches have brought since the last list, by path.
	watched map[string]*amount
}

// amount of what was read.
type amount struct {
	mu             sync.Mutex
	bytes, objects int
}

func newBounded(next http.RoundTripper, l limits) *bounded {
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
	body := &boundedBody{ReadCloser: resp.Body, most: amount{bytes: b.limits.bytes, objects: b.limits.objects}, read: &amount{}}
	if watches && resp.StatusCode == http.StatusOK {
		body.most = amount{bytes: b.limits.watchedBytes, objects: b.limits.watchedObjects}
		body.read = b.watching(r.URL.Path)
	}
	body.count = newCounter(resp.Header.Get("Content-Type"), watches)
	resp.Body = body
	return resp, nil
}

// listed forgets what watches of a kind have brought.
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
