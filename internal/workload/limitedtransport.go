package workload

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/pause"
)

// LimitCalls returns a transport wrapper with which another client of the cluster shares the limiter and the memory
// account of Client. The HostedControlPlane controller uses it for a cluster that is not connected yet.
func (c *Clusters) LimitCalls(key client.ObjectKey) func(http.RoundTripper) http.RoundTripper {
	l := newLimiter(c.pool)
	if e := c.lookup(key); e != nil {
		l = e.limiter
	}
	return func(next http.RoundTripper) http.RoundTripper {
		return limitedTransport{next: c.limitMemory(key, next), limiter: l}
	}
}

// limitedTransport is a transport whose calls hold a permit until the response has been read. All calls of the client
// of a connection go through one.
type limitedTransport struct {
	next    http.RoundTripper
	limiter *limiter
}

func (t limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := t.limiter.acquire(r.Context())
	if err != nil {
		return nil, refuse(r, err)
	}
	resp, err := t.next.RoundTrip(r.WithContext(p.ctx))
	if err != nil {
		return nil, p.release(err)
	}
	resp.Body = limitedBody{resp.Body, p}
	return resp, nil
}

// limitedBody is a response body that releases the permit of its call when it is closed or fails.
type limitedBody struct {
	io.ReadCloser
	permit *permit
}

func (b limitedBody) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.permit.release(err)
	}
	return n, err
}

func (b limitedBody) Close() error {
	err := b.ReadCloser.Close()
	_ = b.permit.release(nil)
	return err
}

// rateLimitedTransport is a transport with a rate limit. A call that would have to wait longer than maxWait is
// rejected, with the time at which it is to be retried.
type rateLimitedTransport struct {
	next  http.RoundTripper
	rate  *rate.Limiter
	slots *retrySlots
}

func newRated(next http.RoundTripper, l *rate.Limiter) rateLimitedTransport {
	slots := &retrySlots{}
	if l.Limit() > 0 && l.Limit() != rate.Inf {
		slots.Interval = time.Duration(float64(time.Second) / float64(l.Limit()))
	}
	return rateLimitedTransport{next: next, rate: l, slots: slots}
}

func (t rateLimitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	reservation := t.rate.Reserve()
	delay := reservation.Delay()
	if delay > maxWait {
		reservation.Cancel()
		return nil, refuse(r, rateLimitedError(t.slots.next(time.Now(), delay)))
	}
	if err := pause.Sleep(r.Context(), delay); err != nil {
		reservation.Cancel()
		return nil, refuse(r, err)
	}
	return t.next.RoundTrip(r)
}

// refuse closes the body of a request that is not sent, as the contract of RoundTripper requires.
func refuse(r *http.Request, err error) error {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return err
}

// sharedLimiter applies the same rate limit to the watches of client-go, which block until they may proceed.
type sharedLimiter struct{ *rate.Limiter }

var _ flowcontrol.RateLimiter = sharedLimiter{}

func (l sharedLimiter) TryAccept() bool { return l.Allow() }

func (l sharedLimiter) Accept() { _ = l.Limiter.Wait(context.Background()) }

func (l sharedLimiter) Stop() {}

func (l sharedLimiter) QPS() float32 { return float32(l.Limit()) }
