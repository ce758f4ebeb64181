package bootstrap

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/providers/kubeadm/bootstrap/discovery"
)

// trusted is for how long a token that was just written to the workload cluster is not read there again: the reconciles of
// a Machine that comes into being follow each other closely, and calls to its cluster are limited. It is well
// below the third of a token's life after which it is read anyway.
const trusted = time.Minute

// tokens remembers what this process last wrote about tokens. The zero value is empty.
type tokens struct {
	mu    sync.Mutex
	known map[tokenKey]remembered
}

type tokenKey struct {
	cluster client.ObjectKey
	id      string
}

type remembered struct {
	state discovery.State
	at    time.Time
}

// remember notes the state of a token, and forgets what is not trusted any more.
func (t *tokens) remember(key tokenKey, state discovery.State, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[tokenKey]remembered{}
	}
	for k, r := range t.known {
		if now.Sub(r.at) >= trusted {
			delete(t.known, k)
		}
	}
	t.known[key] = remembered{state, now}
}

// recall returns the state of a token, if it is trusted.
func (t *tokens) recall(key tokenKey, now time.Time) (discovery.State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.known[key]
	return r.state, ok && now.Sub(r.at) < trusted
}
