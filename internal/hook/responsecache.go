package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/sdk/hooks"
)

const (
	// Limits of the response cache: lifetime of an entry, number of entries and total bytes.
	maxCacheTTL     = 24 * time.Hour
	maxCacheEntries = 8192
	maxCacheBytes   = 32 << 20
)

// responseCache is a cache of responses with an expiry time for each entry. Each call of a handler looks up its
// response here first, so that a handler that blocks is not called again before the time that it requested. When a
// limit is exceeded, the least recently used entries are evicted first.
type responseCache struct {
	now func() time.Time

	mu    sync.Mutex
	lru   *lru.Cache
	bytes int
}

type cacheEntry struct {
	response hooks.Response
	size     int
	expires  time.Time
}

func newResponseCache(now func() time.Time) *responseCache {
	c := &responseCache{now: now}
	c.lru = lru.NewWithEvictionFunc(maxCacheEntries, func(_ lru.Key, entry any) { c.bytes -= entry.(cacheEntry).size })
	return c
}

// cacheKey returns the cache key of a response: the handler, the generation of its ExtensionConfig, the number of
// refresh requests, the object, and the input. Everything that the response depends on must be in it.
func cacheKey(t target, of client.Object, input string, body []byte) string {
	if input == "" {
		sum := sha256.Sum256(body)
		input = hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("%s/%d/%d/%s/%s/%s/%s/%s/%s", t.settings.uid, t.settings.generation, t.fresh, t.handler.Name, t.handler.Hook,
		of.GetNamespace(), of.GetName(), of.GetUID(), input)
}

// cacheTTL returns how long a response may be reused.
func cacheTTL(response hooks.Response, reuse time.Duration) time.Duration {
	if after := retryAfter(response); after > 0 {
		return min(after, maxCacheTTL)
	}
	return min(reuse, maxCacheTTL)
}

// retryAfter returns the retryAfterSeconds of a response; 0 if it does not block.
func retryAfter(response hooks.Response) time.Duration {
	r, ok := response.(hooks.RetryResponse)
	if !ok {
		return 0
	}
	return max(0, time.Duration(r.GetRetryAfterSeconds())*time.Second)
}

// get returns a copy of a response that has not expired, or nil. Its retryAfterSeconds is the remaining time, rounded
// up. The clock is read once, so a response that blocks never becomes one that does not.
func (c *responseCache) get(key string) hooks.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.lru.Get(key)
	if !ok {
		return nil
	}
	entry := found.(cacheEntry)
	left := entry.expires.Sub(c.now())
	if left <= 0 {
		c.lru.Remove(key)
		return nil
	}
	response := entry.response.DeepCopyObject().(hooks.Response)
	if retryAfter(response) > 0 {
		response.(hooks.RetryResponse).SetRetryAfterSeconds(int32(math.Ceil(left.Seconds())))
	}
	return response
}

// put caches a copy of a response for a duration; 0 removes the entry. size is the memory that the response needs.
func (c *responseCache) put(key string, response hooks.Response, size int, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
	if size += len(key); d <= 0 || size > maxCacheBytes/8 {
		return
	}
	c.lru.Add(key, cacheEntry{response: response.DeepCopyObject().(hooks.Response), size: size, expires: c.now().Add(d)})
	c.bytes += size
	for c.bytes > maxCacheBytes {
		c.lru.RemoveOldest()
	}
}

// blockingStartTTL is how long the start of a blocking period is remembered after the time at which the handler
// requested the next call.
const blockingStartTTL = time.Hour

// blockingPeriod is the time during which a handler blocks without interruption.
type blockingPeriod struct{ since, forget time.Time }

// recordBlocking returns the blocking handler and the start of its blocking period, and reports whether the response
// blocks.
func (e *Extensions) recordBlocking(t target, of client.Object, response hooks.Response) (Blocking, bool) {
	t.fresh = 0 // a refresh does not reset the start of the blocking period
	key := cacheKey(t, of, "since", nil)
	retry := retryAfter(response)
	if retry == 0 {
		e.blocking.Remove(key)
		return Blocking{}, false
	}
	now := e.cfg.Now()
	period := blockingPeriod{since: now, forget: now.Add(retry + blockingStartTTL)}
	if before, ok := e.blocking.Get(key); ok && now.Before(before.(blockingPeriod).forget) {
		period.since = before.(blockingPeriod).since
	}
	e.blocking.Add(key, period)
	return Blocking{Handler: t.String(), Message: ClipMessage(response.GetMessage()), Since: period.since, RetryAfter: retry}, true
}
