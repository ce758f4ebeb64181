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
	maxCacheTTL     = 24 * time.Hour
	maxCacheEntries = 8192
	maxCacheBytes   = 32 << 20
)

// responseCache is a cache of responses with an expiry time for each entry. When a limit is exceeded, the least
// recently used entries are evicted first.
type responseCache struct {
	now func() time.Time

	mu    sync.Mutex
	byKey map[string]*list.Element
	used  *list.List // of type cacheEntry, most recently used first
	bytes int
}

type cacheEntry struct {
	key     string
	body    []byte
	expires time.Time
}

func newResponseCache(now func() time.Time) *responseCache {
	return &responseCache{now: now, byKey: map[string]*list.Element{}, used: list.New()}
}

// cacheKey returns the cache key of a response: the handler, the generation of its ExtensionConfig, the number of refresh
// requests, the object, and the input.
func cacheKey(t target, of client.Object, input string, body []byte) string {
	if input == "" {
		sum := sha256.Sum256(body)
		input = hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("%s/%d/%d/%s/%s/%s/%s/%s/%s", t.settings.uid, t.settings.generation, t.fresh, t.handler.Name, t.handler.Hook,
		of.GetNamespace(), of.GetName(), of.GetUID(), input)
}

// cacheTTL returns how long a response may be reused.
func cacheTTL(answer hooks.Response, reuse time.Duration) time.Duration {
	if r, ok := answer.(hooks.RetryResponse); ok && r.GetRetryAfterSeconds() > 0 {
		return min(time.Duration(r.GetRetryAfterSeconds())*time.Second, maxCacheTTL)
	}
	return min(reuse, maxCacheTTL)
}

// get returns a response that has not expired, or nil. Its retryAfterSeconds is the remaining time, rounded up.
func (a *responseCache) get(key string, h hooks.Hook) hooks.Response {
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
func (a *responseCache) find(key string) (body []byte, left time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	element := a.byKey[key]
	if element == nil {
		return nil, 0
	}
	found := element.Value.(cacheEntry)
	if left = found.expires.Sub(a.now()); left <= 0 {
		a.drop(element)
		return nil, 0
	}
	a.used.MoveToFront(element)
	return found.body, left
}

// put caches a response for a duration; zero removes the entry.
func (a *responseCache) put(key string, body []byte, d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.byKey[key]; old != nil {
		a.drop(old)
	}
	if d <= 0 || len(body) > maxCacheBytes/8 {
		return
	}
	a.byKey[key] = a.used.PushFront(cacheEntry{key: key, body: body, expires: a.now().Add(d)})
	a.bytes += len(key) + len(body)
	for a.used.Len() > maxCacheEntries || a.bytes > maxCacheBytes {
		a.drop(a.used.Back())
	}
}

func (a *responseCache) drop(element *list.Element) {
	old := a.used.Remove(element).(cacheEntry)
	a.bytes -= len(old.key) + len(old.body)
	delete(a.byKey, old.key)
}

// blockingStartTTL is how long the start of a blocking period is remembered after the time at which the handler
// requested the next call.
const blockingStartTTL = time.Hour

// recordBlocking returns the blocking handler and the start of its blocking period, and reports whether the response
// blocks.
func (e *Extensions) recordBlocking(t target, of client.Object, answer hooks.Response) (Blocking, bool) {
	t.fresh = 0 // a refresh does not reset the start of the blocking period
	key := cacheKey(t, of, "since", nil)
	r, ok := answer.(hooks.RetryResponse)
	if !ok || r.GetRetryAfterSeconds() <= 0 {
		e.blockedSince.put(key, nil, 0)
		return Blocking{}, false
	}
	b := Blocking{
		Handler: t.String(), Message: ClipMessage(answer.GetMessage()), Since: e.cfg.Now(),
		RetryAfter: time.Duration(r.GetRetryAfterSeconds()) * time.Second,
	}
	if text, left := e.blockedSince.find(key); left > 0 {
		if began, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
			b.Since = began
		}
	}
	e.blockedSince.put(key, []byte(b.Since.Format(time.RFC3339Nano)), b.RetryAfter+blockingStartTTL)
	return b, true
}
