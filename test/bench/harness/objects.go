package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
func (o Objects) Watch(ctx context.Context, changed func(*unstructured.Unstructured)) (store cache.Store, stop func(), err error) {
	c, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, nil, err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(c, o.Resource, o.Namespace, 0, cache.Indexers{}, nil).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { changed(added.(*unstructured.Unstructured)) },
		UpdateFunc: func(_, updated any) { changed(updated.(*unstructured.Unstructured)) },
		DeleteFunc: func(any) { changed(nil) },
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); informer.Run(ctx.Done()) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		stop()
		return nil, nil, fmt.Errorf("list %s: %w", o.Resource.Resource, ctx.Err())
	}
	return informer.GetStore(), stop, nil
}

// Until watches the objects until done returns true for all of them. Calls of done take at most a twentieth of the time,
// because the benchmark shares the machine with the measured processes.
func (o Objects) Until(ctx context.Context, done func([]*unstructured.Unstructured) bool) error {
	changes := make(chan struct{}, 1)
	store, stop, err := o.Watch(ctx, func(*unstructured.Unstructured) {
		select {
		case changes <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	for {
		start := time.Now()
		var all []*unstructured.Unstructured
		for _, object := range store.List() {
			all = append(all, object.(*unstructured.Unstructured))
		}
		if done(all) {
			return nil
		}
		if err := Sleep(ctx, 20*time.Since(start)); err != nil {
			return fmt.Errorf("watch %s: %w", o.Resource.Resource, err)
		}
		select {
		case <-changes:
		case <-ctx.Done():
			return fmt.Errorf("watch %s: %w", o.Resource.Resource, ctx.Err())
		}
	}
}

// UntilEach waits until exactly count objects exist and missing returns "" for each of them. On failure the error contains
// what was missing last.
func (o Objects) UntilEach(ctx context.Context, count int, missing func(*unstructured.Unstructured) string) error {
	reason := ""
	err := o.Until(ctx, func(all []*unstructured.Unstructured) bool {
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
	if err != nil {
		return fmt.Errorf("%s: %w", reason, err)
	}
	return nil
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

func CoreResource(plural string) schema.GroupVersionResource {
	return clusterv1.GroupVersion.WithResource(plural)
}

func KubeadmControlPlanes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "controlplane.cluster.x-k8s.io", Version: "v1beta2", Resource: "kubeadmcontrolplanes"}
}

// WorkloadConfig returns the client configuration of a workload cluster, from its kubeconfig Secret.
func WorkloadConfig(ctx context.Context, config *rest.Config, cluster types.NamespacedName) (*rest.Config, error) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}, secret); err != nil {
		return nil, fmt.Errorf("get the kubeconfig of cluster %s: %w", cluster.Name, err)
	}
	return clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
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

// Bool returns a boolean in an object; false if it is missing.
func Bool(o *unstructured.Unstructured, path ...string) bool {
	value, _, _ := unstructured.NestedBool(o.Object, path...)
	return value
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
func List(ctx context.Context, c client.Client, kind schema.GroupVersionKind, o ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, list, o...); err != nil {
		return nil, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// SetField adds or replaces a field with a JSON patch.
func SetField(ctx context.Context, c client.Client, o client.Object, path string, value any) error {
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": path, "value": value}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch))
}

// SetMetadata sets labels or annotations with a merge patch; a nil value removes one.
func SetMetadata(ctx context.Context, c client.Client, o client.Object, field string, values map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: values}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

// InParallel calls do for 0 to count-1, at most limit calls at a time.
func InParallel(ctx context.Context, count, limit int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for n := range count {
		group.Go(func() error { return do(ctx, n) })
	}
	return group.Wait()
}

// QuietPeriod is the time without writes after which an API server counts as settled.
const QuietPeriod = 6 * time.Second

// WaitSettled polls an API server until there are no writes but of Leases for QuietPeriod. It returns the request counts and
// the time at the last write.
func WaitSettled(ctx context.Context, config *rest.Config, interval, timeout time.Duration) (RequestCounts, time.Time, error) {
	last, err := CountRequests(ctx, config)
	start := time.Now()
	at := start
	for err == nil && time.Since(at) < QuietPeriod {
		if err = Sleep(ctx, interval); err != nil {
			break
		}
		var now RequestCounts
		if now, err = CountRequests(ctx, config); err != nil {
			break
		}
		since := now.Since(last)
		if since.Total(IsWrite) > 0 {
			last, at = now, time.Now()
		}
		if time.Since(start) > timeout {
			err = fmt.Errorf("the API server does not settle: after %v there are still writes: %v", timeout, since.Lines(IsWrite))
		}
	}
	return last, at, err
}
