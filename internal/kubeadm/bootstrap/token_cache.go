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

// tokens caches the tokens that this process wrote recently. The zero value is empty.
type tokens struct {
	mu    sync.Mutex
	known map[tokenKey]remembered
}

type tokenKey struct {
	cluster client.ObjectKey
	id      string
}

type remembered struct {
	state TokenState
	at    time.Time
}

// remember caches the state of a token and evicts expired entries.
func (t *tokens) remember(key tokenKey, state TokenState, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[tokenKey]remembered{}
	}
	for k, r := range t.known {
		if now.Sub(r.at) >= tokenCacheTTL {
			delete(t.known, k)
		}
	}
	t.known[key] = remembered{state, now}
}

// recall returns the cached state of a token.
func (t *tokens) recall(key tokenKey, now time.Time) (TokenState, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.known[key]
	return r.state, ok && now.Sub(r.at) < tokenCacheTTL
}
