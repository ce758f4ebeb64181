package workload

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// TestRate: beyond the burst callers are told when to come back, and what is read from a cache costs nothing.
func TestRate(t *testing.T) { // RC-06
	a := newAPI(t)
	a.add(node("n", "p://1"))
	b := newBench(t, func(c *Config) { c.QPS, c.Burst = 0.01, 12 }) // discovery takes some of the burst
	b.connected(a)
	if nodes, err := b.clusters.Nodes(t.Context(), key, "p://1"); err != nil || len(nodes) != 1 {
		t.Fatalf("%v, %v", nodes, err)
	}
	conn, err := b.clusters.connection(key)
	if err != nil {
		t.Fatal(err)
	}
	pod := client.ObjectKey{Namespace: "ns", Name: "p"}
	for range 12 {
		if err = conn.client.Get(t.Context(), pod, &corev1.Pod{}); err != nil {
			break
		}
	}
	after := fault.RetryAfter(err)
	if !errors.Is(err, ErrCrowded) || fault.KindOf(err) != fault.Unreachable || after < time.Second {
		t.Errorf("beyond the burst: %v, come back after %s", err, after)
	}
	for range 20 {
		if nodes, err := b.clusters.Nodes(t.Context(), key, "p://1"); err != nil || len(nodes) != 1 {
			t.Fatalf("a read from the cache: %v, %v", nodes, err)
		}
	}
}

func TestRetryAfter(t *testing.T) { // RC-06
	for name, tc := range map[string]struct {
		err  error
		want time.Duration
	}{
		"busy":          {fmt.Errorf("calling: %w", fault.As(ErrBusy).RetryIn(time.Minute)), time.Minute},
		"crowded":       {fmt.Errorf("calling: %w", crowded(time.Minute)), time.Minute},
		"always busy":   {fmt.Errorf("calling: %w", ErrBusy), slowRetry},
		"not connected": {fmt.Errorf("calling: %w", ErrNotConnected), 0},
		"no answer":     {fault.New(fault.Unreachable, "Refused", "no"), unreachableRetry},
	} {
		if got := RetryAfter(tc.err); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
