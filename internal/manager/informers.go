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

// informerName is the label "name" of the series about informers. A second informer of the same resource (of another
// namespace, or for another form of the objects) has "-2" behind it, and so on: client-go measures one of each name.
const informerName = "slipway"

// informers makes the informers of the manager's cache, which tell how they fare.
type informers struct {
	scheme   *runtime.Scheme
	queued   *prometheus.GaugeVec
	seconds  *prometheus.HistogramVec
	versions *prometheus.GaugeVec

	mu sync.Mutex
	// names are those in use; made counts the informers of a resource.
	names []*toolscache.InformerName
	made  map[schema.GroupVersionResource]int
}

var _ toolscache.InformerMetricsProvider = &informers{}

// newInformers makes the series and registers them. It fails where they are registered already.
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

// new makes an informer as controller-runtime does by default, under a name.
func (i *informers) new(
	lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	options := toolscache.SharedIndexInformerOptions{ResyncPeriod: resync, Indexers: indexers, InformerMetricsProvider: i}
	if gvk, err := apiutil.GVKForObject(o, i.scheme); err == nil { // others cannot be told apart, and are not measured
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		options.Identifier = i.identify(resource)
	}
	return toolscache.NewSharedIndexInformerWithOptions(lw, o, options)
}

// identify gives the next informer of a resource its name. Where the name belongs to another manager of this process,
// the informer is not measured.
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
			name = nil // the methods of a nil name do nothing
		}
		i.names = append(i.names, name)
	}
	return i.names[n].WithResource(resource)
}

// release gives the names back when the manager has ended.
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
