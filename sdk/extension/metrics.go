package extension

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Results of a call in addition to Success and Failure of the protocol.
const (
	resultPanic   = "Panic"   // the handler panicked; the caller received a Failure
	resultInvalid = "Invalid" // no handler was called for the request
)

type metrics struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "runtime_extension_calls_total", Help: "Calls by hook, handler and result (Success, Failure, Panic, Invalid).",
		}, []string{"hook", "handler", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "runtime_extension_call_duration_seconds", Help: "How long handlers take, in seconds.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30},
		}, []string{"hook", "handler"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "runtime_extension_calls_in_flight", Help: "Calls that are being answered.",
		}, []string{"hook", "handler"}),
	}
	r.MustRegister(m.total, m.duration, m.inFlight, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// begin counts a call as in flight until the returned function is called.
func (m metrics) begin(r route) func() {
	g := m.inFlight.WithLabelValues(r.hook.ID.Hook, r.handler.Name)
	g.Inc()
	return g.Dec
}

func (m metrics) done(r route, result string, took time.Duration) {
	m.total.WithLabelValues(r.hook.ID.Hook, r.handler.Name, result).Inc()
	if result != resultInvalid {
		m.duration.WithLabelValues(r.hook.ID.Hook, r.handler.Name).Observe(took.Seconds())
	}
}
