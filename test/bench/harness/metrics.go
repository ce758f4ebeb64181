package harness

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

func parseMetrics(text []byte, name string) *dto.MetricFamily {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return Must(parser.TextToMetricFamilies(bytes.NewReader(text)))[name]
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}

// Request is a class of requests to the API server.
type Request struct {
	Verb     string `json:"verb"`               // GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE …
	Resource string `json:"resource,omitempty"` // machines/status.cluster.x-k8s.io; empty for other paths
	DryRun   bool   `json:"dryRun,omitempty"`
	Refused  bool   `json:"refused,omitempty"` // status 4xx, such as a conflict, or 5xx
}

// Reads reports whether the request reads a resource.
func (r Request) Reads() bool {
	return r.Resource != "" && slices.Contains([]string{"GET", "LIST", "WATCH", "WATCHLIST"}, r.Verb)
}

// Writes reports whether the request may change a stored object. Reviews and tokens are created by POST but not stored.
func (r Request) Writes() bool {
	stored := r.Resource != "" && r.Resource != "serviceaccounts/token" &&
		!strings.HasSuffix(r.Resource, ".authorization.k8s.io") && !strings.HasSuffix(r.Resource, ".authentication.k8s.io")
	return stored && !r.DryRun && slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, r.Verb)
}

// IsLease reports whether the request concerns a Lease. The number of these depends only on the time.
func (r Request) IsLease() bool { return r.Resource == "leases.coordination.k8s.io" }

// IsWrite reports whether a request writes anything but a Lease.
func IsWrite(r Request) bool { return r.Writes() && !r.IsLease() }

// IsRead reports whether a request reads anything but a Lease.
func IsRead(r Request) bool { return r.Reads() && !r.IsLease() }

// RequestCounts are the numbers of processed requests, including failed requests.
type RequestCounts map[Request]int

// CountRequests reads the request counts of an API server. This takes tens of milliseconds of its processor time, and nearly
// twice as much with compression.
func CountRequests(ctx context.Context, config *rest.Config) RequestCounts {
	config = rest.CopyConfig(config)
	config.DisableCompression = true
	text, err := Must(discovery.NewDiscoveryClientForConfig(config)).RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Checkf(err, "get the metrics of the API server")
	return ParseRequests(text)
}

// ParseRequests parses the metrics of an API server.
func ParseRequests(text []byte) RequestCounts {
	const metric = "apiserver_request_total"
	family := parseMetrics(text, metric)
	if family == nil {
		Failf("the metrics do not contain %s", metric)
	}
	counts := RequestCounts{}
	for _, m := range family.GetMetric() {
		l := labelsOf(m)
		resource := l["resource"]
		if l["subresource"] != "" && resource != "" {
			resource += "/" + l["subresource"]
		}
		if l["group"] != "" && resource != "" {
			resource += "." + l["group"]
		}
		refused := strings.HasPrefix(l["code"], "4") || strings.HasPrefix(l["code"], "5")
		counts[Request{Verb: l["verb"], Resource: resource, DryRun: l["dry_run"] != "", Refused: refused}] += int(m.GetCounter().GetValue())
	}
	return counts
}

// Since returns the requests after an earlier count.
func (c RequestCounts) Since(earlier RequestCounts) RequestCounts {
	out := RequestCounts{}
	for r, n := range c {
		if n != earlier[r] {
			out[r] = n - earlier[r]
		}
	}
	return out
}

func (c RequestCounts) Total(matches func(Request) bool) int {
	n := 0
	for _, l := range c.Lines(matches) {
		n += l.Count
	}
	return n
}

// RequestLine is a row of a list of requests.
type RequestLine struct {
	Request
	Count int `json:"count"`
}

// Lines returns the matching requests, most frequent first.
func (c RequestCounts) Lines(matches func(Request) bool) []RequestLine {
	var out []RequestLine
	for r, n := range c {
		if matches(r) {
			out = append(out, RequestLine{r, n})
		}
	}
	slices.SortFunc(out, func(a, b RequestLine) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}

// Histogram contains cumulative counts of reconciliations by duration.
type Histogram []Bucket

// Bucket counts the reconciliations that took at most Within seconds.
type Bucket struct {
	Within float64
	Count  uint64
}

// Reconciliations are the durations of reconciliations by controller.
type Reconciliations map[string]Histogram

// ParseReconciliations parses the metrics of a manager.
func ParseReconciliations(text []byte) Reconciliations {
	family := parseMetrics(text, "controller_runtime_reconcile_time_seconds")
	out := Reconciliations{}
	for _, m := range family.GetMetric() {
		var h Histogram
		for _, b := range m.GetHistogram().GetBucket() {
			h = append(h, Bucket{b.GetUpperBound(), b.GetCumulativeCount()})
		}
		slices.SortFunc(h, func(a, b Bucket) int { return cmp.Compare(a.Within, b.Within) })
		out[labelsOf(m)["controller"]] = h
	}
	return out
}

// Since returns the reconciliations after an earlier reading.
func (r Reconciliations) Since(earlier Reconciliations) Reconciliations {
	out := Reconciliations{}
	for name, h := range r {
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

// Controllers returns the sorted names of the controllers with reconciliations.
func (r Reconciliations) Controllers() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r)), func(name string) bool { return r[name].Total() == 0 })
}

func (h Histogram) Total() uint64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].Count
}

// Quantile estimates the q-quantile (0 to 1) in seconds, at most the last finite bucket; 0 without reconciliations.
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

// Quantile is the q-quantile (0 to 1) of durations; 0 without durations.
func Quantile(times []time.Duration, q float64) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func Milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
