package harness

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const reconcileText = `# TYPE controller_runtime_reconcile_time_seconds histogram
controller_runtime_reconcile_time_seconds_bucket{controller="machine",le="0.1"} 90
controller_runtime_reconcile_time_seconds_bucket{controller="machine",le="0.2"} 98
controller_runtime_reconcile_time_seconds_bucket{controller="machine",le="1"} 100
controller_runtime_reconcile_time_seconds_bucket{controller="machine",le="+Inf"} 100
controller_runtime_reconcile_time_seconds_sum{controller="machine"} 5
controller_runtime_reconcile_time_seconds_count{controller="machine"} 100
controller_runtime_reconcile_time_seconds_bucket{controller="cluster",le="+Inf"} 0
controller_runtime_reconcile_time_seconds_sum{controller="cluster"} 0
controller_runtime_reconcile_time_seconds_count{controller="cluster"} 0
`

func TestParseReconciliations(t *testing.T) {
	all := ParseReconciliations([]byte(reconcileText))
	if diff := cmp.Diff([]string{"machine"}, all.Controllers()); diff != "" {
		t.Errorf("controllers that did something: %s", diff)
	}
	if n := all["machine"].Total(); n != 100 {
		t.Errorf("total %d", n)
	}
	if all := ParseReconciliations([]byte("up 1\n")); len(all) != 0 {
		t.Errorf("before the first reconciliation there is nothing, not %v", all)
	}
	if err := Try(func() { ParseReconciliations([]byte("no metrics")) }); err == nil {
		t.Error("no error for a text without metrics")
	}
}

func TestQuantile(t *testing.T) {
	h := Histogram{{0.1, 90}, {0.2, 98}, {1, 100}, {math.Inf(1), 100}}
	tests := map[string]struct {
		reason string
		in     Histogram
		q      float64
		want   float64
	}{
		"half":              {"linear within the first bucket, which begins at 0", h, 0.5, 0.1 * 50 / 90},
		"a bucket's end":    {"98 of 100 took at most 0.2 s", h, 0.98, 0.2},
		"within a bucket":   {"half of the two between 0.2 and 1", h, 0.99, 0.6},
		"nothing":           {"no reconciles, no time", nil, 0.99, 0},
		"beyond the last":   {"more than a second is all that is known", Histogram{{1, 0}, {math.Inf(1), 4}}, 0.5, 1},
		"an empty interval": {"all counts zero", Histogram{{1, 0}, {math.Inf(1), 0}}, 0.5, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.in.Quantile(tt.q); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("got %v, want %v: %s", got, tt.want, tt.reason)
			}
		})
	}
}

func TestReconciliationsSince(t *testing.T) {
	later := Reconciliations{"machine": {{0.1, 90}, {1, 100}}, "new": {{0.1, 1}, {1, 1}}}
	earlier := Reconciliations{"machine": {{0.1, 50}, {1, 55}}}
	want := Reconciliations{"machine": {{0.1, 40}, {1, 45}}, "new": {{0.1, 1}, {1, 1}}}
	if diff := cmp.Diff(want, later.Since(earlier)); diff != "" {
		t.Error(diff)
	}
}

func TestQuantileOfTimes(t *testing.T) {
	times := []time.Duration{3, 1, 2, 4}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := Quantile(times, q); got != want {
			t.Errorf("%v: got %d, want %d", q, got, want)
		}
	}
	if times[0] != 3 || Quantile(nil, 0.5) != 0 {
		t.Error("the times stay in order, and none have no quantile")
	}
}
