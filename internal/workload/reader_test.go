package workload

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFillingCacheWakes: a cache that does not fill is waited for once, for a moment, and the controllers are woken when it is full.
func TestFillingCacheWakes(t *testing.T) {
	a := newAPI(t)
	a.set(func(a *api) { a.stuck = true })
	b := newBench(t, nil)
	b.connected(a)
	if _, err := b.clusters.Nodes(t.Context(), key, "p://1"); !errors.Is(err, ErrNotConnected) {
		t.Errorf("a cache that does not fill: %v", err)
	}
	b.drain()
	a.add(node("n1", "p://1"))
	a.set(func(a *api) { a.stuck = false })
	eventually(t, "the controllers are woken when the cache is full", func() bool { return b.queue.Len() == 1 })
	if nodes, err := b.clusters.Nodes(t.Context(), key, "p://1"); err != nil || len(nodes) != 1 {
		t.Errorf("%v, %v", nodes, err)
	}
}

// TestCachedReadsOfASlowCluster: what the cache has is read whoever waits for the cluster, and says nothing about it.
func TestCachedReadsOfASlowCluster(t *testing.T) { // RC-06, RC-07
	a := newAPI(t)
	a.add(node("n1", "p://1"))
	b := newBench(t, nil)
	b.connected(a)
	eventually(t, "the Nodes are cached", func() bool {
		nodes, err := b.clusters.Nodes(t.Context(), key, "p://1")
		return err == nil && len(nodes) == 1
	})
	c, err := b.clusters.Client(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	g := b.clusters.lookup(key).limiter
	g.mu.Lock()
	g.slow = true
	g.mu.Unlock()
	held, err := g.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.cancel(nil)
	usual := b.clusters.pool.latencies.QuickestQuarter()
	for range 10 {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "n1"}, &corev1.Node{}); err != nil {
			t.Errorf("a Node by name while a slow call lasts: %v", err)
		}
		if nodes, err := b.clusters.Nodes(t.Context(), key, "p://1"); err != nil || len(nodes) != 1 {
			t.Errorf("a Node by provider ID while a slow call lasts: %v, %v", nodes, err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "none"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Node that is not there: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, &corev1.Secret{}); !errors.Is(err, errBusy) {
		t.Errorf("a live read while a slow call lasts: %v", err)
	}
	if !g.isSlow() || b.clusters.pool.latencies.QuickestQuarter() != usual {
		t.Errorf("slow: %t, usual %s, was %s: reads from the cache say nothing about the cluster", g.isSlow(), b.clusters.pool.latencies.QuickestQuarter(), usual)
	}
}
