package hook

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/hooks"
)

// metrics are the metrics of calls: those with the prefix capi_ are documented by Cluster API, so dashboards depend on
// their names and labels; the others show which extensions are healthy. The registry creates and updates them.
type metrics struct {
	requests     *prometheus.CounterVec
	durations    *prometheus.HistogramVec
	open         *prometheus.GaugeVec
	flying       *prometheus.GaugeVec
	deprecations *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	byHook := []string{"host", "group", "version", "hook"}
	byExtension := []string{"extension"}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_runtime_sdk_requests_total",
			Help: "Calls of Runtime Extensions by HTTP status code (or <error> without a response) and status in the response.",
		}, append([]string{"code", "status"}, byHook...)),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capi_runtime_sdk_request_duration_seconds",
			Help:    "Time from sending a request to a Runtime Extension until its response was read.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30},
		}, byHook),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "slipway_runtime_sdk_circuit_open",
			Help: "1 while an extension, or one of its handlers, is not called because calls failed, otherwise 0.",
		}, byExtension),
		flying: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "slipway_runtime_sdk_calls_in_flight",
			Help: "Calls to an extension that are in flight.",
		}, byExtension),
		deprecations: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "slipway_runtime_sdk_deprecated_hooks",
			Help: "1 for every deprecated version of a hook that an extension has a handler for.",
		}, []string{"extension", "group", "version", "hook"}),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.durations, m.open, m.flying, m.deprecations} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of Runtime Extensions: %w", err)
		}
	}
	return m, nil
}

// outcome is the result of a call, as label values.
type outcome struct{ code, status string }

func outcomeOf(response hooks.Response, err error) outcome {
	out := outcome{code: "200", status: "Unknown"}
	f := fault.As(err)
	switch {
	case f != nil && f.Reason == reasonFailureResponse:
		out.status = string(hooksv1.ResponseStatusFailure)
	case f != nil && isCallError(f) && f.Reason != reasonNotJSON:
		out.code = "<error>"
		if code := statusCode(f); code != 0 {
			out.code = strconv.Itoa(code)
		}
	case err != nil && f == nil:
		out.code = "<error>"
	case err == nil && response != nil:
		out.status = string(response.GetStatus())
	}
	return out
}

func (m *metrics) called(id hooks.ID, host string, d time.Duration, o outcome) {
	m.requests.WithLabelValues(o.code, o.status, host, id.Group, id.Version, id.Hook).Inc()
	m.durations.WithLabelValues(host, id.Group, id.Version, id.Hook).Observe(d.Seconds())
}

func (m *metrics) circuit(extension string, open bool) {
	value := 0.0
	if open {
		value = 1
	}
	m.open.WithLabelValues(extension).Set(value)
}

// registered records the deprecated hooks that an extension uses.
func (m *metrics) registered(extension string, deprecated []hooks.ID) {
	m.deprecations.DeletePartialMatch(prometheus.Labels{"extension": extension})
	for _, id := range deprecated {
		m.deprecations.WithLabelValues(extension, id.Group, id.Version, id.Hook).Set(1)
	}
}

func (m *metrics) forgotten(extension string) {
	for _, v := range []*prometheus.GaugeVec{m.open, m.flying, m.deprecations} {
		v.DeletePartialMatch(prometheus.Labels{"extension": extension})
	}
}

// known reports whether the extension has been neither removed nor replaced by one of the same name. The mutex must be
// held.
func (e *Extensions) known(x *extension) bool { return e.byName[x.name] == x }

// reportInFlight updates the metric of calls in flight.
func (e *Extensions) reportInFlight(x *extension) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known(x) {
		e.metrics.flying.WithLabelValues(x.name).Set(float64(len(x.permits)))
	}
}
