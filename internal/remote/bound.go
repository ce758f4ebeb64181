package remote

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/remote/answers"
	"github.com/slipwayhq/slipway/internal/remote/endpoint"
)

// bound bounds what the API of a cluster sends. All connections and calls to the cluster share its account.
func (c *Clusters) bound(key client.ObjectKey, next http.RoundTripper) *answers.Transport {
	t := &answers.Transport{Next: next, Limits: answers.DefaultLimits(), Account: c.accounts.Of(key)}
	if c.cfg.Crashes != nil {
		t.Decoding = func() answers.Decoding { return c.cfg.Crashes.Decoding(key) }
	}
	return t
}

// forCache returns the HTTP client of the cache. An answer for the cache that is not read leaves the cache stale, which ends
// the connection; for a call it is an error like any other.
func (c *connection) forCache(cfg *rest.Config) (*http.Client, error) {
	bounded := *c.bounded
	bounded.Refused = func(err error) { c.refused.CompareAndSwap(nil, fault.As(err)) }
	nodes := &answers.Watches{Next: &bounded, Path: c.nodesPath, Of: c.fresh, Filled: c.filled.Load, Now: c.clock.Now}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, nodes)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig cannot be used: %w", err)
	}
	return &http.Client{Transport: wrapped, CheckRedirect: endpoint.NoRedirect}, nil
}

// staleNodes returns a fault where a cache that was filled with Nodes has not been known to be current for too long.
func (c *connection) staleNodes() error {
	if now := c.clock.Now(); c.filled.Load() && now.Sub(c.fresh.At(now, true)) > c.staleAfter {
		return fault.New(fault.Unreachable, "NodesUnreadable", "the API server at %s does not serve Nodes, although it is healthy otherwise: "+
			"correct what is between it and the manager", c.address)
	}
	return nil
}

// excess returns why answers for the cache were not read, or nil. The connection may be nil.
func (c *connection) excess() error {
	if c == nil {
		return nil
	}
	if f := c.refused.Load(); f != nil {
		return f
	}
	return nil
}
