package remote

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/pacing"
)

// The workers of a controller, ten by default, serve all clusters. A limiter for each cluster and a [slowPool] that all
// clusters share keep those that answer slowly from occupying these workers:
//
//	                     every call ended within the latency budget
//	          ┌────────────────────────────────────────────────────────────────┐
//	          ▼                                                                │
//	┌─ quick ──────────────────────┐                    ┌─ slow ───────────────┴───────────────────────────┐
//	│ callsAtOnce calls;           │  a call exceeds    │ one call, with a permit of the slow pool,        │
//	│ another waits for a permit   ├───────────────────►│ or with a probe permit, which ends with the      │
//	│ for up to maxWait            │  its budget        │ budget, where the cluster's last probe was quick │
//	└──────────────────────────────┘                    └──────────────────────────────────────────────────┘
//
//	a call that exceeds its budget continues with a permit of the slow pool, and is canceled where there is none
//
// So clusters that hang for hours occupy slowCallsAtOnce workers, and a cluster that was slow for a moment gets a probe
// permit beside them. A call without a permit, and one that is canceled, returns [ErrBusy]: it is retried later. A write that
// was canceled may have happened, as after any error. Beyond the rate, which no answer changes, a call returns [ErrCrowded].
const (
	// callsAtOnce is how many calls go to one cluster at the same time.
	callsAtOnce = 5
	// maxWait is how long a call waits for a permit, or for a cache that begins to fill.
	maxWait = 250 * time.Millisecond
	// slowRetry is after which time a call to a slow cluster is retried.
	slowRetry = 2 * time.Second
	// slowCallsAtOnce is how many calls go to all slow clusters together, and probesAtOnce how many more with probe permits.
	slowCallsAtOnce, probesAtOnce = 3, 1
	// minBudget and maxBudget bound the latency budget. The former leaves time for waiting for the rate limit.
	minBudget, maxBudget = 2 * maxWait, 2 * time.Second
	// tolerance is how many times the latency of the quickest quarter of the clusters the budget is: where calls to all
	// clusters take longer, because this machine is busy, none is slow, and while a quarter is quick the others do not count.
	tolerance = 10
)

// ErrBusy says that calls to the workload cluster take so long that one more would only keep its caller from
// serving other clusters. It is of kind fault.Unreachable, and says when to retry; use errors.Is.
var ErrBusy error = fault.New(fault.Unreachable, "Busy", "the workload cluster answers slowly").RetryIn(slowRetry)

// ErrCrowded says that more calls are to be made to the workload cluster than it is to get at once: this one has a turn of its own, however
// the cluster answers. It is of kind fault.Unreachable, and says when to retry; use errors.Is.
var ErrCrowded error = fault.New(fault.Unreachable, "Crowded", "other calls to the workload cluster come first")

// crowded returns ErrCrowded with the time of the turn.
func crowded(turn time.Duration) error { return fault.As(ErrCrowded).RetryIn(turn) }

// slowPool has the permits for calls to slow clusters, and the latency budget by which a cluster is slow.
type slowPool struct {
	permits, probes      chan struct{}
	minBudget, maxBudget time.Duration
	latencies            pacing.Latencies[*limiter]
}

func newSlowPool() *slowPool {
	return &slowPool{
		permits: make(chan struct{}, slowCallsAtOnce), probes: make(chan struct{}, probesAtOnce), minBudget: minBudget, maxBudget: maxBudget,
	}
}

// budget is how long a call may take before its cluster is slow.
func (p *slowPool) budget() time.Duration {
	return min(max(p.minBudget, tolerance*p.latencies.QuickestQuarter()), p.maxBudget)
}

// limiter admits the calls to one cluster.
type limiter struct {
	permits chan struct{}
	pool    *slowPool

	mu sync.Mutex
	// slow: the last call that ended exceeded its budget, or one under way has.
	slow bool
	// probedQuickly: the last probe was answered within the budget.
	probedQuickly bool
	// active is how many calls are under way; pooled: one of them has a permit of the slow pool.
	active int
	pooled bool
}

func newLimiter(pool *slowPool) *limiter {
	return &limiter{permits: make(chan struct{}, callsAtOnce), pool: pool, probedQuickly: true}
}

// permit admits one call, until it is released.
type permit struct {
	limiter *limiter
	// ctx is for the call. It ends when the permit is released, or the call has to be canceled.
	ctx    context.Context
	cancel context.CancelCauseFunc
	began  time.Time
	budget time.Duration
	timer  *time.Timer

	// from is where the permit was taken from: those of the limiter, of the slow pool, or the probe permits.
	from               chan struct{}
	exceeded, released bool
}

// acquire returns a permit for a call, or ErrBusy.
func (l *limiter) acquire(ctx context.Context) (*permit, error) {
	if l.isSlow() {
		return l.acquireSlow(ctx)
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case l.permits <- struct{}{}:
	case <-timer.C:
		return nil, fault.As(ErrBusy).RetryIn(maxWait)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow { // since the wait began
		<-l.permits
		return nil, ErrBusy
	}
	return l.begin(ctx, l.permits), nil
}

// acquireSlow returns a permit for the only call to a slow cluster.
func (l *limiter) acquireSlow(ctx context.Context) (*permit, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.active > 0:
	case tryAcquire(l.pool.permits):
		l.pooled = true
		return l.begin(ctx, l.pool.permits), nil
	case l.probedQuickly && tryAcquire(l.pool.probes):
		return l.begin(ctx, l.pool.probes), nil
	}
	return nil, ErrBusy
}

func (l *limiter) isSlow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow
}

// probed records how a probe went, which needs no permit: no worker of a controller waits for it.
func (l *limiter) probed(took time.Duration, err error) {
	budget := l.pool.budget()
	if answered(err) {
		l.pool.latencies.Observe(l, min(took, budget)) // the machine may have become busy since the last call to this cluster
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probedQuickly = err == nil && took < budget
}

// begin returns a permit. The lock is held.
func (l *limiter) begin(ctx context.Context, from chan struct{}) *permit {
	l.active++
	p := &permit{limiter: l, began: time.Now(), budget: l.pool.budget(), from: from}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(p.budget, p.exceed)
	return p
}

// exceed is called when the budget is spent: the call continues with a permit of the slow pool, or is canceled.
func (p *permit) exceed() {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.released {
		return
	}
	p.exceeded, l.slow = true, true
	switch {
	case p.from == l.pool.permits:
	case !l.pooled && tryAcquire(l.pool.permits):
		<-p.from
		p.from, l.pooled = l.pool.permits, true
	default:
		p.cancel(ErrBusy)
	}
}

// release ends the call, and returns its error, or ErrBusy where that is because it was canceled. A permit that is released
// already stays so.
func (p *permit) release(err error) error {
	if p.end() && (p.exceeded || answered(err)) { // a refused connection says nothing of how long calls take
		p.limiter.pool.latencies.Observe(p.limiter, min(time.Since(p.began), p.budget))
	}
	defer p.cancel(nil)
	if err != nil && errors.Is(context.Cause(p.ctx), ErrBusy) {
		return ErrBusy
	}
	return err
}

// end returns the permit, and reports whether that had not been done.
func (p *permit) end() bool {
	p.timer.Stop()
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.released {
		return false
	}
	p.released = true
	l.active--
	l.pooled = l.pooled && p.from != l.pool.permits
	l.slow = p.exceeded || l.pooled
	<-p.from
	return true
}

// do makes a call.
func (l *limiter) do(ctx context.Context, call func(context.Context) error) error {
	p, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	return p.release(call(p.ctx))
}

func tryAcquire(permits chan struct{}) bool {
	select {
	case permits <- struct{}{}:
		return true
	default:
		return false
	}
}

// answered reports whether the API answered a call that returned err.
func answered(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status)
}

// unanswered is after which time a call to a cluster that is connected is retried, where it was not answered.
const unanswered = 5 * time.Second

// RetryAfter returns when to call a workload cluster again after an error of kind fault.Unreachable. Zero after
// ErrNotConnected: Changed enqueues when there is a connection. After any other nothing but time does.
func RetryAfter(err error) time.Duration {
	if after := fault.RetryAfter(err); after > 0 {
		return after
	}
	if errors.Is(err, ErrNotConnected) {
		return 0
	}
	return unanswered
}
