package bootstrap

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenCacheTTL is the time for which a token just written to the workload cluster is not read again. The
// reconciliations of a new Machine follow each other closely, and calls to its cluster are rate limited. The time is
// well below a third of a token's lifetime, after which the token is read again.
const tokenCacheTTL = time.Minute

// tokens caches the tokens that this process wrote recently, so that the controller does not read them again in the
// next reconciliations. The zero value is empty.
type tokens struct {
	mu    sync.Mutex
	known map[tokenKey]cachedToken
}

// tokenKey identifies a token in the cache.
type tokenKey struct {
	cluster client.ObjectKey
	id      string
}

type cachedToken struct {
	state tokenState
	at    time.Time
}

// set caches the state of a token and evicts expired entries. act calls it after it has written a token.
func (t *tokens) set(key tokenKey, state tokenState, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[tokenKey]cachedToken{}
	}
	for k, r := range t.known {
		if now.Sub(r.at) >= tokenCacheTTL {
			delete(t.known, k)
		}
	}
	t.known[key] = cachedToken{state, now}
}

// get returns the cached state of a token. read calls it before it reads the Secret.
func (t *tokens) get(key tokenKey, now time.Time) (tokenState, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.known[key]
	return r.state, ok && now.Sub(r.at) < tokenCacheTTL
}
