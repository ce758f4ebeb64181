package workload

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metrics are the metrics of Cluster API's cluster cache, for each cluster. Their names and labels must stay, because
// dashboards of Cluster API use them. [Clusters] updates them when it connects, probes, disconnects or forgets a
// cluster.
type metrics struct {
	check  *prometheus.GaugeVec
	checks *prometheus.CounterVec
	up     *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	labels := []string{"cluster_name", "cluster_namespace"}
	m := &metrics{
		check: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "capi_cluster_cache_healthcheck",
			Help: "1 when the last probe of the workload cluster's API succeeded, otherwise 0.",
		}, labels),
		checks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capi_cluster_cache_healthchecks_total",
			Help: "Probes of the workload cluster's API by result.",
		}, append(labels, "status")),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "capi_cluster_cache_connection_up",
			Help: "1 while the workload cluster is connected, otherwise 0.",
		}, labels),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.check, m.checks, m.up} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of workload cluster connections: %w", err)
		}
	}
	return m, nil
}

// probed records one probe.
func (m *metrics) probed(key client.ObjectKey, ok bool) {
	status := map[bool]string{true: "success", false: "error"}[ok]
	m.check.WithLabelValues(key.Name, key.Namespace).Set(gauge(ok))
	m.checks.WithLabelValues(key.Name, key.Namespace, status).Inc()
}

// connected records whether a cluster is connected.
func (m *metrics) connected(key client.ObjectKey, up bool) {
	m.up.WithLabelValues(key.Name, key.Namespace).Set(gauge(up))
}

func gauge(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// forget removes all metrics of a cluster.
func (m *metrics) forget(key client.ObjectKey) {
	labels := prometheus.Labels{"cluster_name": key.Name, "cluster_namespace": key.Namespace}
	m.check.DeletePartialMatch(labels)
	m.checks.DeletePartialMatch(labels)
	m.up.DeletePartialMatch(labels)
}
