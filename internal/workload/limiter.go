package workload

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/fault"
)

// The workers of a controller, ten by default, serve all clusters. A limiter for each cluster and a [slowPool] shared
// by all clusters prevent slow clusters from occupying these workers:
//
//	                     every call ended within the latency budget
//	          ┌────────────────────────────────────────────────────────────────┐
//	          ▼                                                                │
//	┌─ quick ──────────────────────┐                    ┌─ slow ───────────────┴───────────────────────────┐
//	│ callsAtOnce calls;           │  a call exceeds    │ one call, with a permit of the slow pool, or,    │
//	│ another waits for a permit   ├───────────────────►│ if the cluster's last probe was quick, with a    │
//	│ for up to maxWait            │  its budget        │ probe permit, which ends with the budget         │
//	└──────────────────────────────┘                    └──────────────────────────────────────────────────┘
//
//	a call that exceeds its budget continues with a permit of the slow pool, or is canceled if there is none
//
// Clusters that hang for hours thus occupy slowCallsAtOnce workers, and a cluster that was slow for a moment gets a
// probe permit in addition. A call without a permit, or one that is canceled, returns [errBusy] and is to be retried
// later. A canceled write may have succeeded, as after any error. Calls beyond the rate limit return [ErrRateLimited],
// however fast the cluster responds.
const (
	// callsAtOnce is the number of concurrent calls to one cluster.
	callsAtOnce = 5
	// maxWait is how long a call waits for a permit, or for a cache to sync after its start.
	maxWait = 250 * time.Millisecond
	// slowRetry is the delay before a call to a slow cluster is retried.
	slowRetry = 2 * time.Second
	// slowCallsAtOnce is the number of concurrent calls to all slow clusters together, probesAtOnce the number of
	// additional calls with probe permits.
	slowCallsAtOnce, probesAtOnce = 3, 1
	// minBudget and maxBudget limit the latency budget. The minimum leaves time to wait for the rate limit.
	minBudget, maxBudget = 2 * maxWait, 2 * time.Second
	// tolerance is the ratio of the budget to the latency of the quickest quarter of the clusters. If calls to all
	// clusters take longer because this machine is busy, no cluster counts as slow; as long as a quarter is quick, the
	// latency of the others does not matter.
	tolerance = 10
)

// errBusy means that calls to the workload cluster are so slow that another one would only prevent its caller from
// serving other clusters. It is of kind fault.Unreachable and includes the retry delay; use errors.Is.
var errBusy error = fault.New(fault.Unreachable, "Busy", "the workload cluster responds slowly").RetryIn(slowRetry)

// ErrRateLimited means that the rate limit for calls to the workload cluster is exhausted. The call gets its own retry
// time, however fast the cluster responds. It is of kind fault.Unreachable; use errors.Is. The Machine controller
// retries soon after it.
var ErrRateLimited error = fault.New(fault.Unreachable, "Crowded", "other calls to the workload cluster come first")

// rateLimitedError returns ErrRateLimited with the time after which to retry.
func rateLimitedError(turn time.Duration) error { return fault.As(ErrRateLimited).RetryIn(turn) }

// slowPool holds the permits for calls to slow clusters, and the latency budget above which a cluster is slow.
type slowPool struct {
	permits, probes      chan struct{}
	minBudget, maxBudget time.Duration
	latencies            latencies[*limiter]
}

func newSlowPool() *slowPool {
	return &slowPool{
		permits: make(chan struct{}, slowCallsAtOnce), probes: make(chan struct{}, probesAtOnce), minBudget: minBudget, maxBudget: maxBudget,
	}
}

// budget returns how long a call may take before its cluster counts as slow.
func (p *slowPool) budget() time.Duration {
	return min(max(p.minBudget, tolerance*p.latencies.quickestQuarter()), p.maxBudget)
}

// limiter limits the calls to one cluster. Each entry of [Clusters] has one, which all of its connections share.
type limiter struct {
	permits chan struct{}
	pool    *slowPool

	mu sync.Mutex
	// slow is set if the last completed call exceeded its budget, or a call in flight has.
	slow bool
	// probedQuickly is set if the last probe succeeded within the budget.
	probedQuickly bool
	// active is the number of calls in flight; pooled is set if one of them has a permit of the slow pool.
	active int
	pooled bool
}

func newLimiter(pool *slowPool) *limiter {
	return &limiter{permits: make(chan struct{}, callsAtOnce), pool: pool, probedQuickly: true}
}

// permit permits one call, until it is released.
type permit struct {
	limiter *limiter
	// ctx is the context of the call. It ends when the permit is released, or to cancel the call.
	ctx    context.Context
	cancel context.CancelCauseFunc
	began  time.Time
	budget time.Duration
	timer  *time.Timer

	// from is the source of the permit: the limiter, the slow pool, or the probe permits.
	from               chan struct{}
	exceeded, released bool
}

// acquire returns a permit for a call, or [errBusy]. [limitedTransport] acquires one for each call.
func (l *limiter) acquire(ctx context.Context) (*permit, error) {
	if l.isSlow() {
		return l.acquireSlow(ctx)
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case l.permits <- struct{}{}:
	case <-timer.C:
		return nil, fault.As(errBusy).RetryIn(maxWait)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.slow { // since the wait started
		<-l.permits
		return nil, errBusy
	}
	return l.begin(ctx, l.permits), nil
}

// acquireSlow returns a permit for a call to a slow cluster, which gets only one at a time.
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
	return nil, errBusy
}

func (l *limiter) isSlow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slow
}

// probed records the duration and result of a probe. Probes need no permit, because no worker of a controller waits for
// them. [Clusters.Reconcile] calls it after each probe.
func (l *limiter) probed(took time.Duration, err error) {
	budget := l.pool.budget()
	if isServerResponse(err) {
		l.pool.latencies.observe(l, min(took, budget)) // the machine may have become busy since the last call
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.probedQuickly = err == nil && took < budget
}

// begin returns a permit. The mutex must be held.
func (l *limiter) begin(ctx context.Context, from chan struct{}) *permit {
	l.active++
	p := &permit{limiter: l, began: time.Now(), budget: l.pool.budget(), from: from}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	p.timer = time.AfterFunc(p.budget, p.exceed)
	return p
}

// exceed is called when the budget is exhausted: the call continues with a permit of the slow pool, or is canceled.
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
		p.cancel(errBusy)
	}
}

// release ends the call and returns its error, or [errBusy] if the call was canceled. It may be called more than once.
func (p *permit) release(err error) error {
	if p.end() && (p.exceeded || isServerResponse(err)) { // a refused connection is no measure of latency
		p.limiter.pool.latencies.observe(p.limiter, min(time.Since(p.began), p.budget))
	}
	defer p.cancel(nil)
	if err != nil && errors.Is(context.Cause(p.ctx), errBusy) {
		return errBusy
	}
	return err
}

// end returns the permit, and reports whether this is the first time.
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

// do makes a call with a permit. A read that waits for a cache to sync calls it.
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

// isServerResponse reports whether err came from the API server, or is nil.
func isServerResponse(err error) bool {
	var status apierrors.APIStatus
	return err == nil || errors.As(err, &status)
}

// unreachableRetry is the delay before a call to a connected cluster is retried if the server did not respond.
const unreachableRetry = 5 * time.Second

// RetryAfter returns the delay before calling a workload cluster again after an error of kind fault.Unreachable. It is
// zero after ErrNotConnected, because Changed enqueues when there is a connection. After any other error no event
// follows, so the caller must requeue. The MachineHealthCheck and MachinePool controllers requeue after this delay.
func RetryAfter(err error) time.Duration {
	if after := fault.RetryAfter(err); after > 0 {
		return after
	}
	if errors.Is(err, ErrNotConnected) {
		return 0
	}
	return unreachableRetry
}
