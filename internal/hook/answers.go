package hook

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	// Limits of the response cache: lifetime of an entry, number of entries and total bytes.
	keptLongest = 24 * time.Hour
	keptMost    = 8192
	keptBytes   = 32 << 20
)

// answers is a cache of responses with an expiry time for each entry. When a limit is exceeded, the least recently used
// entries are evicted first.
type answers struct {
	now func() time.Time

	mu    sync.Mutex
	byKey map[string]*list.Element
	used  *list.List // of type kept, most recently used first
	bytes int
}

type kept struct {
	key     string
	body    []byte
	expires time.Time
}

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, byKey: map[string]*list.Element{}, used: list.New()}
}

// keyOf returns the cache key of a response: the handler, the generation of its ExtensionConfig, the number of refresh
// requests, the object, and the input.
func keyOf(t target, of client.Object, input string, body []byte) string {
	if input == "" {
		sum := sha256.Sum256(body)
		input = hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("%s/%d/%d/%s/%s/%s/%s/%s/%s", t.settings.uid, t.settings.generation, t.fresh, t.handler.Name, t.handler.Hook,
		of.GetNamespace(), of.GetName(), of.GetUID(), input)
}

// keepFor returns how long a response may be reused.
func keepFor(answer hooks.Response, reuse time.Duration) time.Duration {
	if r, ok := answer.(hooks.RetryResponse); ok && r.GetRetryAfterSeconds() > 0 {
		return min(time.Duration(r.GetRetryAfterSeconds())*time.Second, keptLongest)
	}
	return min(reuse, keptLongest)
}

// get returns a response that has not expired, or nil. Its retryAfterSeconds is the remaining time, rounded up.
func (a *answers) get(key string, h hooks.Hook) hooks.Response {
	body, left := a.find(key)
	if left <= 0 {
		return nil
	}
	response, _, err := decode(body, h)
	if err != nil {
		return nil
	}
	if r, ok := response.(hooks.RetryResponse); ok && r.GetRetryAfterSeconds() > 0 {
		r.SetRetryAfterSeconds(int32(math.Ceil(left.Seconds())))
	}
	return response
}

// find returns an entry and its remaining lifetime; zero means that there is none. An expired entry is dropped. The
// clock is read once, so the remaining lifetime of a returned entry is always greater than zero.
func (a *answers) find(key string) (body []byte, left time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	element := a.byKey[key]
	if element == nil {
		return nil, 0
	}
	found := element.Value.(kept)
	if left = found.expires.Sub(a.now()); left <= 0 {
		a.drop(element)
		return nil, 0
	}
	a.used.MoveToFront(element)
	return found.body, left
}

// keep caches a response for a duration; zero removes the entry.
func (a *answers) keep(key string, body []byte, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.byKey[key]; old != nil {
		a.drop(old)
	}
	if d <= 0 || len(body) > keptBytes/8 {
		return
	}
	a.byKey[key] = a.used.PushFront(kept{key: key, body: body, expires: a.now().Add(d)})
	a.bytes += len(key) + len(body)
	for a.used.Len() > keptMost || a.bytes > keptBytes {
		a.drop(a.used.Back())
	}
}

func (a *answers) drop(element *list.Element) {
	old := a.used.Remove(element).(kept)
	a.bytes -= len(old.key) + len(old.body)
	delete(a.byKey, old.key)
}

// forgotten is how long the start of a blocking period is remembered after the time at which the handler requested the
// next call.
const forgotten = time.Hour

// blocking returns the blocking handler and the start of its blocking period, and reports whether the response blocks.
func (e *Extensions) blocking(t target, of client.Object, answer hooks.Response) (Blocking, bool) {
	t.fresh = 0 // a refresh does not reset the start of the blocking period
	key := keyOf(t, of, "since", nil)
	r, ok := answer.(hooks.RetryResponse)
	if !ok || r.GetRetryAfterSeconds() <= 0 {
		e.blocks.keep(key, nil, 0)
		return Blocking{}, false
	}
	b := Blocking{
		Handler: t.String(), Message: ClipMessage(answer.GetMessage()), Since: e.cfg.Now(),
		RetryAfter: time.Duration(r.GetRetryAfterSeconds()) * time.Second,
	}
	if text, left := e.blocks.find(key); left > 0 {
		if began, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
			b.Since = began
		}
	}
	e.blocks.keep(key, []byte(b.Since.Format(time.RFC3339Nano)), b.RetryAfter+forgotten)
	return b, true
}
