package workload

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// limitMemory returns a transport that limits the memory of responses from a cluster. All connections and calls to the
// cluster share its account. Each new connection and [Clusters.LimitCalls] call it.
func (c *Clusters) limitMemory(key client.ObjectKey, next http.RoundTripper) *limitingTransport {
	t := &limitingTransport{Next: next, Limits: defaultLimits(), Account: c.accounts.ForCluster(key)}
	if c.cfg.Crashes != nil {
		t.Decoding = func() DecodingMemory { return c.cfg.Crashes.Decoding(key) }
	}
	return t
}

// forCache returns the HTTP client of the cache. A rejected response leaves the cache stale and therefore ends the
// connection; for other calls it is an ordinary error.
func (c *connection) forCache(cfg *rest.Config) (*http.Client, error) {
	bounded := *c.bounded
	bounded.Refused = func(err error) { c.refused.CompareAndSwap(nil, fault.As(err)) }
	nodes := &watchRecorder{Next: &bounded, Path: c.nodesPath, Freshness: c.fresh, Filled: c.filled.Load, Now: c.clock.Now}
	wrapped, err := rest.HTTPWrappersForConfig(cfg, nodes)
	if err != nil {
		return nil, fmt.Errorf("the credentials of the kubeconfig cannot be used: %w", err)
	}
	return &http.Client{Transport: wrapped, CheckRedirect: noRedirect}, nil
}

// staleNodes returns a fault if the cached Nodes have not been known to be current for longer than staleAfter. The
// client of the connection calls it before each read of cached Nodes.
func (c *connection) staleNodes() error {
	if now := c.clock.Now(); c.filled.Load() && now.Sub(c.fresh.At(now, true)) > c.staleAfter {
		return fault.New(fault.Unreachable, "NodesUnreadable", "the API server at %s does not serve Nodes, although it is healthy otherwise: "+
			"correct the proxy between it and the manager", c.address)
	}
	return nil
}

// excess returns the reason why responses for the cache were rejected, or nil. Each reconciliation of the Cluster
// checks it. The connection may be nil.
func (c *connection) excess() error {
	if c == nil {
		return nil
	}
	if f := c.refused.Load(); f != nil {
		return f
	}
	return nil
}
