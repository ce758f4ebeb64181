package manager

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// informerName is the label "name" of the informer metrics. Further informers of the same resource, for other
// namespaces or other representations of the objects, get the suffix "-2" and so on, because client-go
// measures only one informer for each name.
const informerName = "slipway"

// informers creates the informers of the manager's cache and exports their metrics. [Run] passes it to
// controller-runtime. Names and labels of the metrics are those of Kubernetes components and must stay.
type informers struct {
	scheme   *runtime.Scheme
	queued   *prometheus.GaugeVec
	seconds  *prometheus.HistogramVec
	versions *prometheus.GaugeVec

	mu sync.Mutex
	// names are the names in use. made counts the informers of each resource.
	names []*toolscache.InformerName
	made  map[schema.GroupVersionResource]int
}

var _ toolscache.InformerMetricsProvider = &informers{}

// newInformers creates and registers the metrics. It fails if they are already registered. [Run] calls it before it
// creates the manager.
func newInformers(scheme *runtime.Scheme, r prometheus.Registerer) (*informers, error) {
	labels := []string{"name", "group", "version", "resource"}
	i := &informers{
		scheme: scheme, made: map[schema.GroupVersionResource]int{},
		queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "informer_queued_items", Help: "Changes that were received and not yet handed to the controllers.",
		}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "informer_processing_latency_seconds", Help: "Time to store a change and to hand it to the controllers.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, labels),
		versions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "informer_store_resource_version", Help: "Resource version up to which the cache has seen changes, its last 15 digits.",
		}, labels),
	}
	for _, c := range []prometheus.Collector{i.queued, i.seconds, i.versions} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of informers: %w", err)
		}
	}
	return i, nil
}

// new creates an informer like the default of controller-runtime, with a name for its metrics. The cache of the manager
// creates its informers with it.
func (i *informers) new(
	lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	options := toolscache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers, InformerMetricsProvider: i}
	if gvk, err := apiutil.GVKForObject(o, i.scheme); err == nil { // types without a kind are not measured
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		options.Identifier = i.identify(resource)
	}
	return toolscache.NewSharedIndexInformerWithOptions(lw, o, options)
}

// identify returns a name for the next informer of a resource. If another manager in this process uses the
// name, the informer is not measured.
func (i *informers) identify(resource schema.GroupVersionResource) toolscache.InformerNameAndResource {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.made[resource]
	i.made[resource]++
	if n == len(i.names) {
		text := informerName
		if n > 0 {
			text = fmt.Sprintf("%s-%d", informerName, n+1)
		}
		name, err := toolscache.NewInformerName(text)
		if err != nil {
			name = nil // methods of a nil name do nothing
		}
		i.names = append(i.names, name)
	}
	return i.names[n].WithResource(resource)
}

// release releases the names when the manager ends. [Run] calls it at its end.
func (i *informers) release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range i.names {
		name.Release()
	}
}

func labelsOf(id toolscache.InformerNameAndResource) []string {
	r := id.GroupVersionResource()
	return []string{id.Name(), r.Group, r.Version, r.Resource}
}

// NewQueuedItemMetric implements cache.InformerMetricsProvider.
func (i *informers) NewQueuedItemMetric(id toolscache.InformerNameAndResource) toolscache.GaugeMetric {
	return i.queued.WithLabelValues(labelsOf(id)...)
}

// NewProcessingLatencyMetric implements cache.InformerMetricsProvider.
func (i *informers) NewProcessingLatencyMetric(id toolscache.InformerNameAndResource) toolscache.HistogramMetric {
	return i.seconds.WithLabelValues(labelsOf(id)...)
}

// NewStoreResourceVersionMetric implements cache.InformerMetricsProvider.
func (i *informers) NewStoreResourceVersionMetric(id toolscache.InformerNameAndResource) toolscache.GaugeMetric {
	return i.versions.WithLabelValues(labelsOf(id)...)
}
