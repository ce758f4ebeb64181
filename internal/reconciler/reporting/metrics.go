package reporting

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Metrics are the metrics of all controllers; the driver and the writers of the controllers count in them. A nil
// *Metrics records nothing.
type Metrics struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	stale   *prometheus.CounterVec
	hits    *prometheus.CounterVec
	misses  *prometheus.CounterVec
	held    *prometheus.CounterVec
	dropped *prometheus.CounterVec
}

// NewMetrics creates the metrics and registers them; the manager calls it once. It fails if they are already
// registered. Dashboards depend on the names and labels: capi_* are the names of the reference implementation,
// slipway_* are Slipway's own.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		total: counter("capi_reconcile_total", "Reconciliations by controller and result.", "controller", "result"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capi_reconcile_time_seconds", Help: "Time that a reconciliation takes, by controller.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"controller"}),
		stale: counter("capi_reconcile_stale_cache_skips_total",
			"Reconciliations left out because the cache did not have the controller's own last write yet, by the kind it was of.", "controller", "cached_kind"),
		hits:   counter("capi_ssa_cache_hits_total", "Server-side applies left out because they would change nothing.", "kind", "controller"),
		misses: counter("capi_ssa_cache_misses_total", "Server-side applies that were sent.", "kind", "controller"),
		held: counter("slipway_status_writes_held_total",
			"Changes of a status that were deferred to be written together with others.", "controller"),
		dropped: counter("slipway_events_dropped_total", "Events left out because there were too many.", "controller"),
	}
	for _, c := range []prometheus.Collector{m.total, m.seconds, m.stale, m.hits, m.misses, m.held, m.dropped} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of controllers: %w", err)
		}
	}
	return m, nil
}

// Reconciled counts a reconciliation. The driver calls it.
func (m *Metrics) Reconciled(controller string, took time.Duration, result ctrl.Result, err error) {
	if m == nil {
		return
	}
	label := "success"
	switch {
	case err != nil:
		label = "error"
	case result.RequeueAfter > 0:
		label = "requeue_after"
	}
	m.total.WithLabelValues(controller, label).Inc()
	m.seconds.WithLabelValues(controller).Observe(took.Seconds())
}

// Skipped counts a reconciliation that was skipped because the cache held a stale object of the kind. The driver calls
// it.
func (m *Metrics) Skipped(controller, kind string) {
	if m != nil {
		m.stale.WithLabelValues(controller, kind).Inc()
	}
}

// Applied counts a server-side apply that was sent, or skipped because it would not change anything. kube.Writer calls
// it for each apply (reconciler.Setup.Writer), but never with a nil *Metrics.
func (m *Metrics) Applied(controller, kind string, sent bool) {
	if sent {
		m.misses.WithLabelValues(kind, controller).Inc()
		return
	}
	m.hits.WithLabelValues(kind, controller).Inc()
}

// HeldBack counts a status change that was deferred. The driver calls it when it defers a write.
func (m *Metrics) HeldBack(controller string) {
	if m != nil {
		m.held.WithLabelValues(controller).Inc()
	}
}

// droppedEvent counts an event that was dropped. [EventLog.Record] calls it.
func (m *Metrics) droppedEvent(controller string) {
	if m != nil {
		m.dropped.WithLabelValues(controller).Inc()
	}
}
