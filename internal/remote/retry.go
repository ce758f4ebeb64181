package remote

import (
	"errors"
	"time"

	"github.com/slipwayhq/slipway/internal/fault"
)

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
