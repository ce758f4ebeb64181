package manager

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/reconciler/reporting"
)

// informed reads the series of a registry: "series name/group/version/resource" and the value, of histograms the count.
func informed(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			key := family.GetName() + " " + strings.Join([]string{labels["name"], labels["group"], labels["version"], labels["resource"]}, "/")
			out[key] = m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// one lists a single object and watches nothing.
func one(list runtime.Object) toolscache.ListerWatcher {
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}, doesNotStream{})
}

// doesNotStream says that lists do not come as a watch.
type doesNotStream struct{}

// IsWatchListSemanticsUnSupported implements the question of client-go.
func (doesNotStream) IsWatchListSemanticsUnSupported() bool { return true }

// --sync-period reaches the cache, and from there each informer: without any event an object is told again.
func TestSyncPeriod(t *testing.T) { // FL-03
	options, err := cacheOptions(Config{SyncPeriod: 42 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if options.SyncPeriod == nil || *options.SyncPeriod != 42*time.Millisecond {
		t.Fatalf("the cache's period is %v", options.SyncPeriod)
	}
	i := &informers{scheme: runtime.NewScheme()} // of kinds that it does not know: the names of measured ones are those of other tests
	object := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "one"}}
	informer := i.new(one(&corev1.SecretList{Items: []corev1.Secret{object}}), &corev1.Secret{}, *options.SyncPeriod, toolscache.Indexers{})
	told := make(chan struct{}, 1)
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {
		select {
		case told <- struct{}{}:
		default:
		}
	}}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	select {
	case <-told: // after a second, which is the least that client-go takes
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was told again")
	}
}

func TestInformers(t *testing.T) { // ME-01
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	i, err := newInformers(scheme, registry)
	if err != nil {
		t.Fatal(err)
	}
	defer i.release()
	foreign := &unstructured.Unstructured{}
	foreign.SetAPIVersion("example.org/v1")
	foreign.SetKind("Policy")
	made := []toolscache.SharedIndexInformer{
		i.new(one(&clusterv1.MachineList{ListMeta: metav1.ListMeta{ResourceVersion: "42"}, Items: []clusterv1.Machine{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}),
			&clusterv1.Machine{}, time.Hour, toolscache.Indexers{}),
		i.new(one(&clusterv1.MachineList{ListMeta: metav1.ListMeta{ResourceVersion: "43"}}), &clusterv1.Machine{}, time.Hour, toolscache.Indexers{}),
		i.new(one(&corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "44"}}), &corev1.Secret{}, time.Hour, toolscache.Indexers{}),
		i.new(one(&unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{"resourceVersion": "45"}}}),
			foreign, time.Hour, toolscache.Indexers{}),
	}
	for _, informer := range made {
		go informer.RunWithContext(t.Context())
	}
	for _, informer := range made {
		if !toolscache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
			t.Fatal("the test has ended")
		}
	}
	got := informed(t, registry)
	want := map[string]float64{
		"informer_store_resource_version slipway/cluster.x-k8s.io/v1beta2/machines":   42,
		"informer_store_resource_version slipway-2/cluster.x-k8s.io/v1beta2/machines": 43, // in another namespace
		"informer_store_resource_version slipway//v1/secrets":                         44,
		"informer_store_resource_version slipway/example.org/v1/policies":             45,
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %v, want %v", key, got[key], value)
		}
		for _, series := range []string{"informer_queued_items", "informer_processing_latency_seconds"} {
			if _, ok := got[strings.Replace(key, "informer_store_resource_version", series, 1)]; !ok {
				t.Errorf("%s of %s is missing in %v", series, key, slices.Sorted(maps.Keys(got)))
			}
		}
	}
	if n := got["informer_processing_latency_seconds slipway/cluster.x-k8s.io/v1beta2/machines"]; n == 0 {
		t.Error("the change of a Machine was not timed")
	}
	if n := got["informer_queued_items slipway/cluster.x-k8s.io/v1beta2/machines"]; n != 0 {
		t.Errorf("%v changes wait although all were handed over", n)
	}
}

// TestInformersOfTwoManagers: the second one in a process works too, and names are free again when a manager has ended.
func TestInformersOfTwoManagers(t *testing.T) {
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	machines := clusterv1.GroupVersion.WithResource("machines")
	var all [3]*informers
	for n := range all {
		if all[n], err = newInformers(scheme, prometheus.NewRegistry()); err != nil {
			t.Fatal(err)
		}
	}
	measured := []bool{all[0].identify(machines).Reserved(), all[1].identify(machines).Reserved()}
	all[0].release()
	measured = append(measured, all[2].identify(machines).Reserved())
	all[1].release()
	all[2].release()
	if diff := cmp.Diff([]bool{true, false, true}, measured); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
	registry := prometheus.NewRegistry()
	if _, err := reporting.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := newInformers(scheme, registry); err != nil {
		t.Errorf("beside the metrics of controllers: %v", err)
	}
	if _, err := newInformers(scheme, registry); err == nil {
		t.Error("the same series were registered twice")
	}
}
