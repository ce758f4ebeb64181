package workload

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/policy"
)

// TestLimiterOfOtherClients: who calls the cluster past the connection counts as the connection's callers do, and waits for
// a slow cluster no more than they do.
func TestLimiterOfOtherClients(t *testing.T) { // RC-04, RC-06
	a := newAPI(t)
	hang := make(chan struct{})
	a.add(node("n", "p://1"))
	a.set(func(a *api) { a.hang = hang })
	b := newBench(t, nil)
	b.clusters.pool.minBudget, b.clusters.pool.maxBudget = time.Hour, time.Hour // none is given up
	b.connected(a)
	conn, err := b.clusters.connection(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := ParseKubeconfig(a.kubeconfig("one"), policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Wrap(b.clusters.LimitCalls(key))
	other, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	call := func() error {
		_, err := other.CoreV1().Nodes().Get(context.Background(), "n", metav1.GetOptions{})
		return err
	}
	done := make(chan error, callsAtOnce)
	for range callsAtOnce {
		go func() { done <- call() }()
	}
	eventually(t, "all permits are taken", func() bool { return len(conn.limiter.permits) == callsAtOnce })
	if err := conn.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !errors.Is(err, errBusy) {
		t.Errorf("the connection beside as many calls as it takes: %v", err)
	}
	if err := call(); !errors.Is(err, errBusy) || fault.KindOf(err) != fault.Unreachable {
		t.Errorf("one more of them: %v", err)
	}
	close(hang)
	for range callsAtOnce {
		if err := <-done; err != nil {
			t.Errorf("a call that was let in: %v", err)
		}
	}
	if err := call(); err != nil || len(conn.limiter.permits) != 0 {
		t.Errorf("afterwards: %v, %d calls under way", err, len(conn.limiter.permits))
	}
	cfg.Wrap(b.clusters.LimitCalls(client.ObjectKey{Namespace: "ns", Name: "never seen"}))
	if other, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if err := call(); err != nil {
		t.Errorf("a cluster that was not seen yet: %v", err)
	}
}

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
	if !errors.Is(err, ErrRateLimited) || fault.KindOf(err) != fault.Unreachable || after < time.Second {
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
		"busy":          {fmt.Errorf("calling: %w", fault.As(errBusy).RetryIn(time.Minute)), time.Minute},
		"crowded":       {fmt.Errorf("calling: %w", rateLimitedError(time.Minute)), time.Minute},
		"always busy":   {fmt.Errorf("calling: %w", errBusy), slowRetry},
		"not connected": {fmt.Errorf("calling: %w", ErrNotConnected), 0},
		"no answer":     {fault.New(fault.Unreachable, "Refused", "no"), unreachableRetry},
	} {
		if got := RetryAfter(tc.err); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
