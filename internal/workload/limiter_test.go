package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// TestSlowClusterHoldsFewWorkers: of the hundred workers of a controller a cluster that does not answer keeps five until
// that is noticed, and one from then on; the others are told at once, and serve another cluster.
func TestSlowClusterHoldsFewWorkers(t *testing.T) { // RC-04, RC-06
	slow, fast := newAPI(t), newAPI(t)
	hang := make(chan struct{})
	slow.add(node("n", "p://1"))
	slow.set(func(a *api) { a.hang = hang })
	fast.add(node("n", "p://1"))
	b := newBench(t, nil)
	dial := func(a *api) *connection {
		conn, err := b.clusters.dial(t.Context(), task{
			key: key, cluster: &clusterv1.Cluster{}, entry: &entry{limiter: newLimiter(b.clusters.pool)}, kubeconfig: a.kubeconfig("one"),
		})
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
			case errors.Is(err, errBusy) && fault.KindOf(err) == fault.Unreachable:
				told.Add(1)
			case err == nil:
				answered.Add(1)
			default:
				t.Errorf("a call to a slow cluster: %v", err)
			}
		}()
	}
	eventually(t, "all workers but one are told that the cluster is slow", func() bool { return told.Load() == workers-1 })
	if err := toFast.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil {
		t.Errorf("another cluster: %v", err)
	}
	if !toSlow.limiter.isSlow() {
		t.Error("the cluster does not count as slow while a call lasts")
	}
	if err := toSlow.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !errors.Is(err, errBusy) {
		t.Errorf("one more call to the slow cluster: %v", err)
	}
	close(hang)
	for range workers {
		<-done
	}
	if answered.Load() != 1 {
		t.Errorf("%d calls were answered in the end, want 1", answered.Load())
	}
	if err := toSlow.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}); err != nil || toSlow.limiter.isSlow() {
		t.Errorf("a cluster that answers again: %v, slow: %v", err, toSlow.limiter.isSlow())
	}
}

// TestSlowClustersShareAPool: however many clusters are slow, together they keep few workers.
func TestSlowClustersShareAPool(t *testing.T) { // RC-06
	l := newSlowPool()
	var inside []*permit
	for i := range 3 * slowCallsAtOnce {
		g := newLimiter(l)
		g.slow = true
		v, err := g.acquire(t.Context())
		if (err == nil) != (i < slowCallsAtOnce+probesAtOnce) {
			t.Errorf("cluster %d: %v", i, err)
		}
		if err == nil {
			inside = append(inside, v)
			if _, err := g.acquire(t.Context()); !errors.Is(err, errBusy) {
				t.Errorf("a second call to slow cluster %d: %v", i, err)
			}
		}
	}
	for _, v := range inside {
		if err := v.release(nil); err != nil {
			t.Error(err)
		}
		v.cancel(nil)
	}
	g := newLimiter(l)
	g.slow = true
	if err := g.do(t.Context(), func(context.Context) error { return nil }); err != nil || g.isSlow() {
		t.Errorf("a call that takes no time: %v, slow: %v", err, g.isSlow())
	}
	if len(l.permits) != 0 || len(l.probes) != 0 {
		t.Errorf("%d permits and %d probe permits are taken, and no call is under way", len(l.permits), len(l.probes))
	}
}

// full returns a slow pool whose permits are taken by clusters that do not answer.
func full(t *testing.T) *slowPool {
	l := newSlowPool()
	for range slowCallsAtOnce {
		g := newLimiter(l)
		g.slow = true
		v, err := g.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = v.release(nil); v.cancel(nil) })
	}
	return l
}

// TestQuickAgainWhileOthersHang: a cluster that was slow once, because the machine was busy for a moment, is served again
// though others, which do not answer, keep all permits of the slow pool; one that is slow still does not keep a worker.
func TestQuickAgainWhileOthersHang(t *testing.T) { // RC-06
	l := full(t)
	g := newLimiter(l)
	g.slow = true
	if err := g.do(t.Context(), func(context.Context) error { return nil }); err != nil || g.isSlow() {
		t.Errorf("a call that takes no time: %v, slow: %v", err, g.isSlow())
	}
	l.minBudget, l.maxBudget = time.Millisecond, time.Millisecond
	g.slow = true
	if err := g.do(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }); !errors.Is(err, errBusy) || !g.isSlow() {
		t.Errorf("a call that takes long: %v, slow: %v", err, g.isSlow())
	}
	if len(l.probes) != 0 || g.active != 0 {
		t.Errorf("%d probe permits are taken, and %d calls are under way", len(l.probes), g.active)
	}
}

// TestWhichClustersGetAProbePermit: a probe permit is not for clusters whose probes are slow or fail, so that those of others find it.
func TestWhichClustersGetAProbePermit(t *testing.T) { // RC-02, RC-06
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	g := b.clusters.lookup(key).limiter
	g.pool, g.slow = full(t), true
	tried := func() bool {
		b.clock.SetTime(b.clock.Now().Add(b.clusters.cfg.Timing.ProbeInterval))
		b.reconcile()
		v, err := g.acquire(t.Context())
		if err == nil {
			v.exceed() // as its timer does: the cluster stays slow
			_ = v.release(nil)
			v.cancel(nil)
		}
		return err == nil
	}
	if !tried() {
		t.Error("not tried, though its probe was quick")
	}
	a.set(func(a *api) { a.status = http.StatusInternalServerError })
	if tried() {
		t.Error("tried, though its probe failed")
	}
	a.set(func(a *api) { a.status = 0 })
	if !tried() {
		t.Error("not tried, though its probe was quick again")
	}
	g.probed(time.Hour, nil)
	if _, err := g.acquire(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("after a probe that took long: %v", err)
	}
}

// TestHangingCallIsGivenUp: a call that takes long goes on if there is a permit of the slow pool, and is canceled if there is
// none, whatever the API does: with a hundred clusters that hang three workers wait, and no more.
func TestHangingCallIsGivenUp(t *testing.T) { // RC-04, RC-06
	l := newSlowPool()
	l.minBudget, l.maxBudget = time.Millisecond, time.Millisecond
	type outcome struct {
		g   *limiter
		err error
	}
	const clusters, calls = 100, 2
	answer, outcomes := make(chan struct{}), make(chan outcome, calls*clusters)
	for range clusters {
		g := newLimiter(l)
		for range calls {
			go func() {
				outcomes <- outcome{g, g.do(context.Background(), func(ctx context.Context) error {
					select {
					case <-ctx.Done():
						return fmt.Errorf("calling: %w", ctx.Err())
					case <-answer:
						return nil
					}
				})}
			}()
		}
	}
	for range calls*clusters - slowCallsAtOnce {
		if o := <-outcomes; !errors.Is(o.err, errBusy) || fault.KindOf(o.err) != fault.Unreachable || !o.g.isSlow() {
			t.Fatalf("a call that was given up: %v, slow: %v", o.err, o.g.isSlow())
		}
	}
	close(answer)
	for range slowCallsAtOnce {
		if o := <-outcomes; o.err != nil {
			t.Errorf("a call with a permit of the slow pool: %v", o.err)
		}
	}
	if len(l.permits) != 0 {
		t.Errorf("%d permits are taken, and no call is under way", len(l.permits))
	}
}

// TestFullLimiter: a call that waits for a permit in vain is refused, and a cluster that turns out slow meanwhile is left alone.
func TestFullLimiter(t *testing.T) { // RC-06
	g := newLimiter(newSlowPool())
	var inside []*permit
	for range callsAtOnce {
		v, err := g.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inside = append(inside, v)
	}
	if _, err := g.acquire(t.Context()); !errors.Is(err, errBusy) {
		t.Errorf("one more than fit: %v", err)
	}
	waiting := make(chan error, 1)
	go func() { _, err := g.acquire(context.Background()); waiting <- err }()
	inside[0].exceed() // as its timer does
	_ = inside[1].release(nil)
	if err := <-waiting; !errors.Is(err, errBusy) {
		t.Errorf("the cluster is slow by now: %v", err)
	}
	if !g.isSlow() {
		t.Error("a quick call ended, while one that takes long has not")
	}
	_ = inside[0].release(nil)
	for _, v := range inside[2:] {
		_ = v.release(nil)
	}
	if g.isSlow() || len(g.permits) != 0 || g.active != 0 || len(g.pool.permits) != 0 {
		t.Errorf("when all have left: %+v", g)
	}
	for _, v := range inside {
		v.cancel(nil)
	}
}

// TestAnswerThatDoesNotEnd: a call needs its permit until its answer was read: whoever sends an answer byte by byte is as slow as
// one that does not answer.
func TestAnswerThatDoesNotEnd(t *testing.T) { // RC-04, RC-06
	a := newAPI(t)
	a.add(node("n", "p://1"))
	b := newBench(t, nil)
	b.connected(a)
	conn, err := b.clusters.connection(key)
	if err != nil {
		t.Fatal(err)
	}
	get := func() error { return conn.client.Get(t.Context(), client.ObjectKey{Name: "n"}, &corev1.Node{}) }
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	a.set(func(a *api) { a.hang, a.begun = hang, true })
	for range slowCallsAtOnce { // calls to other clusters
		b.clusters.pool.permits <- struct{}{}
	}
	if err := get(); !errors.Is(err, errBusy) || fault.KindOf(err) != fault.Unreachable || fault.RetryAfter(err) != slowRetry {
		t.Errorf("a call whose answer does not end: %v", err)
	}
	if !conn.limiter.isSlow() || conn.limiter.active != 0 || len(conn.limiter.permits) != 0 {
		t.Errorf("slow: %t, %d calls under way, %d permits taken", conn.limiter.isSlow(), conn.limiter.active, len(conn.limiter.permits))
	}
	a.set(func(a *api) { a.hang = nil })
	if err := get(); err != nil || conn.limiter.isSlow() || len(b.clusters.pool.probes) != 0 {
		t.Errorf("with a probe permit, when it answers: %v, slow: %t, %d probe permits taken", err, conn.limiter.isSlow(), len(b.clusters.pool.probes))
	}
}

// joined returns the limiter of a cluster that the manager knows.
func joined(l *slowPool) *limiter {
	g := newLimiter(l)
	l.latencies.Add(g)
	return g
}

func TestBudget(t *testing.T) { // RC-06
	cases := map[string]struct {
		reason string
		usual  time.Duration
		want   time.Duration
	}{
		"nothing known": {"room for the limit of the rate", 0, minBudget},
		"quick":         {"tens of milliseconds are no fault", 5 * time.Millisecond, minBudget},
		"busy machine":  {"all clusters take long: it is not theirs", 100 * time.Millisecond, time.Second},
		"all are slow":  {"workers do not wait for ever", 10 * time.Second, maxBudget},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newSlowPool()
			for range 20 {
				l.latencies.Observe(joined(l), tc.usual)
			}
			if got := l.budget(); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBudgetWithOthers: clusters that take a second for each of many calls stay slow ones. Otherwise each of them would keep
// five workers.
func TestBudgetWithOthers(t *testing.T) { // RC-06
	const second = time.Second
	cases := map[string]struct {
		reason     string
		well, slow int // clusters
		want       time.Duration
	}{
		"three of twenty":    {"the others are quick", 17, 3, minBudget},
		"most of them":       {"a quarter is quick: so it is not the machine", 5, 15, minBudget},
		"one of two":         {"the other is quick", 1, 1, minBudget},
		"one for itself":     {"nobody has to wait for it", 0, 1, maxBudget},
		"all":                {"as on a machine that is busy", 0, 20, maxBudget},
		"a thousand, a few":  {"the others are quick", 990, 10, minBudget},
		"a thousand, nearly": {"the machine is busy", 100, 900, maxBudget},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newSlowPool()
			for range tc.well {
				l.latencies.Observe(joined(l), 3*time.Millisecond)
			}
			var slow []*limiter
			for range tc.slow {
				slow = append(slow, joined(l))
			}
			for range 200 { // calls to each, while no one calls the others
				for _, g := range slow {
					l.latencies.Observe(g, min(second, l.budget()))
				}
			}
			if got := l.budget(); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBudgetWithErrors: a call that no one answered tells how long calls take only if it took long. Otherwise, with many
// clusters down on a busy machine, the others would be slow ones.
func TestBudgetWithErrors(t *testing.T) { // RC-06
	const busyMachine, bySuch = 100 * time.Millisecond, time.Second
	nodes := corev1.Resource("nodes")
	cases := map[string]struct {
		reason string
		err    error
		want   time.Duration
	}{
		"refused":   {"it never came to the API", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, bySuch},
		"cut":       {"no answer came", fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), bySuch},
		"cancelled": {"the caller left", context.Canceled, bySuch},
		"refusal":   {"the API answered", fmt.Errorf("getting: %w", apierrors.NewNotFound(nodes, "n")), minBudget},
		"its error": {"the API answered", apierrors.NewInternalError(io.EOF), minBudget},
		"no error":  {"the API answered", nil, minBudget},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := newSlowPool()
			for range 5 {
				l.latencies.Observe(joined(l), busyMachine)
			}
			for range 15 {
				g := joined(l)
				if err := g.do(t.Context(), func(context.Context) error { return tc.err }); !errors.Is(err, tc.err) {
					t.Fatalf("the call returned %v, want %v", err, tc.err)
				}
				g.probed(time.Microsecond, tc.err)
			}
			if got := l.budget(); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestBudgetWithGivenUpCalls: no answer within the budget is one that took at least as long.
func TestBudgetWithGivenUpCalls(t *testing.T) { // RC-06
	l := full(t)
	l.minBudget = time.Millisecond
	err := joined(l).do(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if got := l.budget(); !errors.Is(err, errBusy) || got != tolerance*l.minBudget {
		t.Errorf("%v, and the budget is %s, want %s", err, got, tolerance*l.minBudget)
	}
}

// TestForgottenClusters: what was known of clusters that are gone counts no more.
func TestForgottenClusters(t *testing.T) {
	l := newSlowPool()
	g := joined(l)
	l.latencies.Observe(g, time.Millisecond)
	l.latencies.Forget(g)
	l.latencies.Observe(g, time.Millisecond) // the last call ends
	l.latencies.Observe(joined(l), 10*time.Second)
	if got := l.budget(); got != maxBudget {
		t.Errorf("%s: only the slow one is left", got)
	}
}
