package ui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/hook"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Names of the metrics that the page reads, and limits. Package hook registers the metrics under the same names.
const (
	callsMetric    = "capi_runtime_sdk_requests_total"
	durationMetric = "capi_runtime_sdk_request_duration_seconds"
	circuitMetric  = "slipway_runtime_sdk_circuit_open"
	inFlightMetric = "slipway_runtime_sdk_calls_in_flight"
	metricsTimeout = 3 * time.Second
	maxExtensions  = 200
)

// extensionsContent is the input of templates/extensions.html, which reads its fields by name.
type extensionsContent struct {
	Extensions []extensionView
	Cut        cut
	// Unread is the reason why ExtensionConfigs are not known, or empty.
	Unread string
	// MetricsText is the reason why calls are not shown.
	MetricsText string
}

type extensionView struct {
	Name, URL, Endpoint string
	Conditions          []conditionRow
	Good                bool
	Handlers            []handlerView
	// Circuit is "open", "closed" or empty if it is unknown.
	Circuit  string
	InFlight string
}

type handlerView struct {
	Name, Hook, Version, Timeout, Policy string
	// Calls are the calls of the hook at the endpoint of the extension; nil if they are unknown.
	Calls *callStats
}

// callStats are the calls of one hook at one endpoint.
type callStats struct {
	Total, Failed int64
	P50, P99      string
}

// extensionsPage shows the Runtime Extensions. [Server.Handler] routes to it.
func (s *Server) extensionsPage(q request) (any, error) {
	var out extensionsContent
	kind := schema.GroupKind{Group: runtimev1.GroupVersion.Group, Kind: "ExtensionConfig"}
	metrics, problem := q.source.readMetrics(q.Context())
	out.MetricsText = problem
	switch c := q.source.mirror.CopyOf(kind); {
	case c.Reason != "":
		out.Unread = "ExtensionConfigs cannot be read: " + c.Reason + "."
	case !c.Listed:
		out.Unread = "ExtensionConfigs are being read."
	}
	var configs []*unstructured.Unstructured
	configs, out.Cut = limit(q.source.store.Objects(kind, ""), maxExtensions)
	for _, u := range configs {
		out.Extensions = append(out.Extensions, newExtensionView(q, u, metrics))
	}
	return out, nil
}

func newExtensionView(q request, u *unstructured.Unstructured, m extensionMetrics) extensionView {
	v := extensionView{Name: u.GetName(), URL: q.source.objectURL(rootcause.RefOf(u)), Good: true}
	config, ok := rootcause.Decode[runtimev1.ExtensionConfig](withoutBundle(u))
	if !ok {
		v.Good, v.Endpoint = false, "the object has a field of an unknown type"
		return v
	}
	endpoint, _ := hook.EndpointOf(config.Spec.ClientConfig) // a condition of the extension has the error
	v.Endpoint = endpoint.Host()
	v.Conditions = conditionRows(u, q.now)
	v.Good = !slices.ContainsFunc(v.Conditions, func(c conditionRow) bool { return !c.Good })
	for _, h := range config.Status.Handlers {
		v.Handlers = append(v.Handlers, handlerView{
			Name: h.Name, Hook: h.RequestHook.Hook, Version: h.RequestHook.APIVersion, Timeout: fmt.Sprintf("%ds", h.TimeoutSeconds), Policy: string(h.FailurePolicy),
			Calls: m.calls[callKey{v.Endpoint, h.RequestHook.APIVersion, h.RequestHook.Hook}],
		})
	}
	slices.SortFunc(v.Handlers, func(a, b handlerView) int { return cmp.Or(cmp.Compare(a.Hook, b.Hook), cmp.Compare(a.Name, b.Name)) })
	if open, known := m.circuits[v.Name]; known {
		v.Circuit = "closed"
		if open {
			v.Circuit, v.Good = "open", false
		}
	}
	if n, known := m.inFlight[v.Name]; known {
		v.InFlight = strconv.FormatInt(n, 10)
	}
	return v
}

// withoutBundle returns a copy of an ExtensionConfig without its CA bundle. The mirror shortens long texts, and a shortened
// bundle cannot be decoded.
func withoutBundle(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()
	unstructured.RemoveNestedField(out.Object, "spec", "clientConfig", "caBundle")
	return out
}

// callKey identifies a hook at an endpoint. The version is the API version with its group.
type callKey struct{ host, version, hook string }

// extensionMetrics are the metrics of all extensions.
type extensionMetrics struct {
	calls    map[callKey]*callStats
	circuits map[string]bool
	inFlight map[string]int64
}

func (s *Source) readMetrics(ctx context.Context) (extensionMetrics, string) {
	if s.Metrics == nil {
		return extensionMetrics{}, "No Slipway manager is known for this management cluster, so calls, latencies and circuits are not shown."
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	data, err := s.Metrics(ctx)
	if err != nil {
		return extensionMetrics{}, "The metrics of the manager cannot be read: " + fault.UserMessage(err)
	}
	m, err := parseMetrics(data)
	if err != nil {
		return extensionMetrics{}, "The metrics of the manager cannot be parsed: " + err.Error()
	}
	return m, ""
}

// parseMetrics parses the metrics of a manager.
func parseMetrics(data []byte) (extensionMetrics, error) {
	m := extensionMetrics{calls: map[callKey]*callStats{}, circuits: map[string]bool{}, inFlight: map[string]int64{}}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return m, err
	}
	for _, sample := range families[callsMetric].GetMetric() {
		label := labelsOf(sample)
		s := m.statsOf(label)
		n := int64(sample.GetCounter().GetValue())
		s.Total += n
		if label["code"] != "200" || label["status"] == "Failure" {
			s.Failed += n
		}
	}
	for _, sample := range families[durationMetric].GetMetric() {
		s := m.statsOf(labelsOf(sample))
		s.P50, s.P99 = quantile(sample.GetHistogram(), 0.5), quantile(sample.GetHistogram(), 0.99)
	}
	for _, sample := range families[circuitMetric].GetMetric() {
		name := labelsOf(sample)["extension"]
		m.circuits[name] = m.circuits[name] || sample.GetGauge().GetValue() > 0
	}
	for _, sample := range families[inFlightMetric].GetMetric() {
		m.inFlight[labelsOf(sample)["extension"]] += int64(sample.GetGauge().GetValue())
	}
	return m, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	out := map[string]string{}
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}

func (m extensionMetrics) statsOf(label map[string]string) *callStats {
	key := callKey{label["host"], label["group"] + "/" + label["version"], label["hook"]}
	if m.calls[key] == nil {
		m.calls[key] = &callStats{}
	}
	return m.calls[key]
}

// quantile returns the upper bound of the bucket that contains the quantile.
func quantile(h *dto.Histogram, q float64) string {
	if h.GetSampleCount() == 0 {
		return ""
	}
	rank := q * float64(h.GetSampleCount())
	last := 0.0
	for _, b := range h.GetBucket() {
		if math.IsInf(b.GetUpperBound(), 1) {
			break
		}
		last = b.GetUpperBound()
		if float64(b.GetCumulativeCount()) >= rank {
			return "≤ " + secondsText(last)
		}
	}
	return "> " + secondsText(last)
}

func secondsText(s float64) string { return time.Duration(s * float64(time.Second)).String() }
