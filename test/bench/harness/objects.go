package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects are all objects of a resource in a namespace; an empty namespace means all namespaces.
type Objects struct {
	Config    *rest.Config
	Resource  schema.GroupVersionResource
	Namespace string
}

// Watch calls changed with each object that is added or updated, and with nil for a deletion, until ctx ends or stop is
// called. It returns after the initial list.
func (o Objects) Watch(ctx context.Context, changed func(*unstructured.Unstructured)) (store cache.Store, stop func()) {
	c := Must(dynamic.NewForConfig(o.Config))
	informer := dynamicinformer.NewFilteredDynamicInformer(c, o.Resource, o.Namespace, 0, cache.Indexers{}, nil).Informer()
	Must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { changed(added.(*unstructured.Unstructured)) },
		UpdateFunc: func(_, updated any) { changed(updated.(*unstructured.Unstructured)) },
		DeleteFunc: func(any) { changed(nil) },
	}))
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx.Done()) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		stop()
		Checkf(ctx.Err(), "list %s", o.Resource.Resource)
	}
	return informer.GetStore(), stop
}

// Until watches the objects until done returns true for all of them. Calls of done take at most a twentieth of the time,
// because the benchmark shares the machine with the measured processes.
func (o Objects) Until(ctx context.Context, done func([]*unstructured.Unstructured) bool) {
	changes := make(chan struct{}, 1)
	store, stop := o.Watch(ctx, func(*unstructured.Unstructured) {
		select {
		case changes <- struct{}{}:
		default:
		}
	})
	defer stop()
	for {
		start := time.Now()
		var all []*unstructured.Unstructured
		for _, object := range store.List() {
			all = append(all, object.(*unstructured.Unstructured))
		}
		if done(all) {
			return
		}
		Checkf(Wait(ctx, 20*time.Since(start)), "watch %s", o.Resource.Resource)
		select {
		case <-changes:
		case <-ctx.Done():
			Checkf(ctx.Err(), "watch %s", o.Resource.Resource)
		}
	}
}

// UntilEach waits until exactly count objects exist and missing returns "" for each of them. On failure the error contains
// what was missing last.
func (o Objects) UntilEach(ctx context.Context, count int, missing func(*unstructured.Unstructured) string) {
	reason := ""
	err := Try(func() {
		o.Until(ctx, func(all []*unstructured.Unstructured) bool {
			reason = fmt.Sprintf("%d of %d %s exist", len(all), count, o.Resource.Resource)
			ready := 0
			for _, object := range all {
				if m := missing(object); m != "" {
					reason = object.GetName() + ": " + m
				} else {
					ready++
				}
			}
			return ready == count && len(all) == count
		})
	})
	Checkf(err, "%s", reason)
}

// IsAvailable returns "" if the Available condition is True, for UntilEach.
func IsAvailable(o *unstructured.Unstructured) string {
	if IsTrue(o, "Available") {
		return ""
	}
	return "not Available"
}

// IsRunning returns "" if the phase is Running, for UntilEach.
func IsRunning(o *unstructured.Unstructured) string {
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase != "Running" {
		return "not Running"
	}
	return ""
}

func Nodes(workload *rest.Config) Objects {
	return Objects{Config: workload, Resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}}
}

// Integer returns a number in an object; 0 if it is missing.
func Integer(o *unstructured.Unstructured, path ...string) int {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	switch n := value.(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// IsTrue reports whether a condition is True.
func IsTrue(o *unstructured.Unstructured, conditionType string) bool {
	return Condition(o, conditionType)["status"] == "True"
}

// Condition returns a condition of an object; nil if it is missing.
func Condition(o *unstructured.Unstructured, conditionType string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "conditions")
	conditions, _ := value.([]any)
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// List returns all matching objects of a kind.
func List(ctx context.Context, c client.Client, kind schema.GroupVersionKind, o ...client.ListOption) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	Checkf(c.List(ctx, list, o...), "list %ss", kind.Kind)
	return list.Items
}

// SetField adds or replaces a field with a JSON patch.
func SetField(ctx context.Context, c client.Client, o client.Object, path string, value any) {
	patch := Must(json.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}}))
	Checkf(c.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch)), "set %s of %s", path, o.GetName())
}

// SetMetadata sets labels or annotations with a merge patch; a nil value removes one.
func SetMetadata(ctx context.Context, c client.Client, o client.Object, field string, values map[string]any) {
	patch := Must(json.Marshal(map[string]any{"metadata": map[string]any{field: values}}))
	Checkf(c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)), "set %s of %s", field, o.GetName())
}

// QuietPeriod is the time without writes after which an API server counts as settled.
const QuietPeriod = 6 * time.Second

// WaitSettled polls an API server until there are no writes but of Leases for QuietPeriod. It returns the request counts and
// the time at the last write.
func WaitSettled(ctx context.Context, config *rest.Config, interval, timeout time.Duration) (last RequestCounts, at time.Time) {
	last = CountRequests(ctx, config)
	start := time.Now()
	at = start
	for time.Since(at) < QuietPeriod {
		Sleep(ctx, interval)
		now := CountRequests(ctx, config)
		since := now.Since(last)
		if since.Total(IsWrite) > 0 {
			last, at = now, time.Now()
		}
		if time.Since(start) > timeout {
			Failf("the API server does not settle: after %v there are still writes: %v", timeout, since.Lines(IsWrite))
		}
	}
	return last, at
}
