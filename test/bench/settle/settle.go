// Package settle says what an API server was asked, and when nothing is written to it any more.
//
// Does: reads the server's metrics; waits for quiet.
//
// Never: writes.
//
// Read first: [Wait].
package settle

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/slipwayhq/slipway/test/bench/requests"
)

const (
	// Quiet is how long nothing may be written, leases apart, for a server to count as settled.
	Quiet = 6 * time.Second
	// Often is the time between two looks where the moment of the last write matters more than what looking costs.
	Often = 2 * time.Second
)

// Counts asks the API server how many requests it has answered. That takes tens of milliseconds of its processor time, as
// much as a few writes, and nearly twice that if it has to compress the answer.
func Counts(ctx context.Context, config *rest.Config) (requests.Counts, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	text, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the API server's metrics: %w", err)
	}
	return requests.Parse(bytes.NewReader(text))
}

// IsWrite is a write that someone made on purpose: leases are renewed by the clock.
func IsWrite(r requests.Request) bool { return r.Kind() == requests.Write && !r.Lease() }

// IsRead is a read, lists and watches included, leases apart.
func IsRead(r requests.Request) bool { return r.Kind() == requests.Read && !r.Lease() }

// Wait waits until nothing is written any more, and looks as often as it is told. It returns what the server had been asked
// by then, and when the last write was seen.
func Wait(ctx context.Context, config *rest.Config, look, within time.Duration) (requests.Counts, time.Time, error) {
	last, err := Counts(ctx, config)
	if err != nil {
		return nil, time.Time{}, err
	}
	began := time.Now()
	at := began
	for time.Since(at) < Quiet {
		if err := Pause(ctx, look); err != nil {
			return nil, at, err
		}
		now, err := Counts(ctx, config)
		if err != nil {
			return nil, at, err
		}
		since := now.Since(last)
		if since.Total(IsWrite) > 0 {
			last, at = now, time.Now()
		}
		if time.Since(began) > within {
			return nil, at, fmt.Errorf("it does not settle: after %v there are still writes: %v", within, since.Lines(IsWrite))
		}
	}
	return last, at, nil
}

// Pause waits; the error says that ctx ended first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
