package remote

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/slipwayhq/slipway/internal/fault"
)

// busyAgain is when to come back to a slow cluster.
const busyAgain = 2 * time.Second

// afterKey names the time after which to come back, in the details of ErrBusy.
const afterKey = "after"

// busy returns ErrBusy for somebody who is to come back after some time.
func busy(after time.Duration) error {
	return fault.As(ErrBusy).With(afterKey, after)
}

// RetryAfter returns when to come back after an error that is ErrBusy; false for others.
func RetryAfter(err error) (time.Duration, bool) {
	if !errors.Is(err, ErrBusy) {
		return 0, false
	}
	details := fault.As(err).Details
	for i := 0; i+1 < len(details); i += 2 {
		if after, ok := details[i+1].(time.Duration); ok && details[i] == afterKey {
			return after, true
		}
	}
	return busyAgain, true
}

// unanswered is when to ask a workload cluster again that is connected, and did not answer a call.
const unanswered = 5 * time.Second

// AskAgain returns when to ask a workload cluster again after an error of kind fault.Unreachable. Zero after
// ErrNotConnected: Changed wakes who waits for the connection. After any other nothing but time does.
func AskAgain(err error) time.Duration {
	if after, busy := RetryAfter(err); busy {
		return after
	}
	if errors.Is(err, ErrNotConnected) {
		return 0
	}
	return unanswered
}

// limited is a transport that keeps to a rate (RC-06). A call that would have to wait for longer than a moment is not
// made: its caller comes back when there is room.
type limited struct {
	next    http.RoundTripper
	limiter *rate.Limiter
	turns   *turns
}

func newLimited(next http.RoundTripper, l *rate.Limiter) limited {
	each := time.Duration(0)
	if l.Limit() > 0 && l.Limit() != rate.Inf {
		each = time.Duration(float64(time.Second) / float64(l.Limit()))
	}
	return limited{next: next, limiter: l, turns: &turns{each: each}}
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	reservation := l.limiter.Reserve()
	delay := reservation.Delay()
	if delay > queueing {
		reservation.Cancel()
		return nil, busy(l.turns.next(time.Now(), delay))
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.next.RoundTrip(r)
	case <-r.Context().Done():
		reservation.Cancel()
		return nil, r.Context().Err()
	}
}

// sharedLimiter is the same limiter for the watches of client-go, which wait.
type sharedLimiter struct{ *rate.Limiter }

var _ flowcontrol.RateLimiter = sharedLimiter{}

// TryAccept implements flowcontrol.RateLimiter.
func (l sharedLimiter) TryAccept() bool { return l.Allow() }

// Accept implements flowcontrol.RateLimiter.
func (l sharedLimiter) Accept() { time.Sleep(l.Reserve().Delay()) }

// Wait implements flowcontrol.RateLimiter.
func (l sharedLimiter) Wait(ctx context.Context) error { return l.Limiter.Wait(ctx) }

// Stop implements flowcontrol.RateLimiter.
func (l sharedLimiter) Stop() {}

// QPS implements flowcontrol.RateLimiter.
func (l sharedLimiter) QPS() float32 { return float32(l.Limit()) }
