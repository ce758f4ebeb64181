package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRetrySlots(t *testing.T) { // RC-06
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ms := time.Millisecond
	tests := map[string]struct {
		reason string
		before []time.Duration // slots given before, at the same time
		now    time.Duration   // later
		delay  time.Duration
		want   time.Duration
	}{
		"alone":           {"there is capacity then", nil, 0, 300 * ms, 300 * ms},
		"second":          {"the first has that time", []time.Duration{300 * ms}, 0, 300 * ms, 350 * ms},
		"later":           {"the last slot is over", []time.Duration{300 * ms}, time.Second, 300 * ms, 300 * ms},
		"beyond a second": {"no caller waits for longer", make([]time.Duration, 20), 0, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			slots := retrySlots{Interval: 50 * ms}
			for _, delay := range tc.before {
				slots.next(now, delay)
			}
			if diff := cmp.Diff(tc.want, slots.next(now.Add(tc.now), tc.delay)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
