package latency

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metric is controller-runtime's histogram of the time that reconciles took, in seconds.
const metric = "controller_runtime_reconcile_time_seconds"

// Histogram counts reconciles by how long they took.
type Histogram []Bucket

// Bucket counts what took at most Within seconds, what is in smaller buckets included.
type Bucket struct {
	Within float64
	Count  uint64
}

// Quantile is the value below or at which a share q (0 to 1) of the times is; 0 if there are none.
func Quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// Parse returns the histograms by controller; none before the first reconcile.
func Parse(text io.Reader) (map[string]Histogram, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	out := map[string]Histogram{}
	for _, m := range families[metric].GetMetric() {
		name := ""
		for _, l := range m.GetLabel() {
			if l.GetName() == "controller" {
				name = l.GetValue()
			}
		}
		var h Histogram
		for _, b := range m.GetHistogram().GetBucket() {
			h = append(h, Bucket{b.GetUpperBound(), b.GetCumulativeCount()})
		}
		slices.SortFunc(h, func(a, b Bucket) int { return cmp.Compare(a.Within, b.Within) })
		out[name] = h
	}
	return out, nil
}

// Since is what came after an earlier moment, of one controller or another.
func Since(later, earlier map[string]Histogram) map[string]Histogram {
	out := map[string]Histogram{}
	for name, h := range later {
		before := map[float64]uint64{}
		for _, b := range earlier[name] {
			before[b.Within] = b.Count
		}
		h = slices.Clone(h)
		for i := range h {
			h[i].Count -= before[h[i].Within]
		}
		out[name] = h
	}
	return out
}

// Names are the controllers that reconciled something, in order.
func Names(all map[string]Histogram) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return all[name].Total() == 0 })
}

// Total is the number of reconciles.
func (h Histogram) Total() uint64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].Count
}

// Quantile estimates within how many seconds a share q (0 to 1) of the reconciles ended; 0 if there were none. What is
// beyond the last bucket with an end counts as that end.
func (h Histogram) Quantile(q float64) float64 {
	rank := q * float64(h.Total())
	if rank == 0 {
		return 0
	}
	lower, below := 0.0, 0.0
	for _, b := range h {
		count := float64(b.Count)
		if count >= rank {
			if math.IsInf(b.Within, 1) {
				return lower
			}
			return lower + (b.Within-lower)*(rank-below)/(count-below)
		}
		lower, below = b.Within, count
	}
	return lower
}
