package remote

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// TestSlowClusterHoldsFewWorkers: of the hundred workers of a controller a cluster that does not answer keeps ten; the
// others are told at once, and serve another cluster.
func TestSlowClusterHoldsFewWorkers(t *testing.T) { // RC-04, RC-06
	slow, fast := newAPI(t), newAPI(t)
	hang := make(chan struct{})
	slow.add(node("n", "p://1"))
	slow.set(func(a *api) { a.hang = hang })
	fast.add(node("n", "p://1"))
	b := newBench(t, nil)
	dial := func(a *api) *connection {
		conn, err := b.clusters.dial(t.Context(), a.kubeconfig("one"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.close)
		return conn
	}
	toSlow, toFast := dial(slow), dial(fast)

	const workers = 100
	var told, answered atomic.Int32
	done := make(chan struct{}, workers)
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			err := toSlow.client.Get(context.Background(), client.ObjectKey{Name: "n"}, &corev1.Node{})
			switch {
			case errors.Is(err, ErrBusy) && fault.KindOf(err) == fault.Unreachable:
				told.Add(1)
			case err == nil:
				answered.Add(1)
			default:
				t.Errorf("a call to a slow cluster: %v", err)
			}
		}()
	}
	eventually(t, "most workers are told that the cluster is slow", func() bool { return told.Load() == workers-callsAtOnce })
	if err := toFast.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil {
		t.Errorf("another cluster: %v", err)
	}
	if !toSlow.gate.isSlow() {
		eventually(t, "the cluster counts as slow while its calls last", toSlow.gate.isSlow)
	}
	if err := toSlow.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !errors.Is(err, ErrBusy) {
		t.Errorf("one more call to the slow cluster: %v", err)
	}
	close(hang)
	for range workers {
		<-done
	}
	if answered.Load() != callsAtOnce {
		t.Errorf("%d calls were answered in the end, want %d", answered.Load(), callsAtOnce)
	}
	if err := toSlow.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil || toSlow.gate.isSlow() {
		t.Errorf("a cluster that answers again: %v, slow: %v", err, toSlow.gate.isSlow())
	}
}

// TestSlowClustersShareALane: however many clusters are slow, together they keep few workers.
func TestSlowClustersShareALane(t *testing.T) { // RC-06
	lane := make(chan struct{}, slowCallsAtOnce)
	var leave []func()
	for i := range 3 * slowCallsAtOnce {
		g := newGate(lane)
		g.slow = true
		out, err := g.enter(t.Context())
		if (err == nil) != (i < slowCallsAtOnce) {
			t.Errorf("cluster %d: %v", i, err)
		}
		if err == nil {
			leave = append(leave, out)
			if _, err := g.enter(t.Context()); !errors.Is(err, ErrBusy) {
				t.Errorf("a second call to slow cluster %d: %v", i, err)
			}
		}
	}
	for _, out := range leave {
		out()
	}
	g := newGate(lane)
	g.slow = true
	if err := g.do(t.Context(), func() error { return nil }); err != nil || g.isSlow() {
		t.Errorf("a call that takes no time: %v, slow: %v", err, g.isSlow())
	}
}

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
