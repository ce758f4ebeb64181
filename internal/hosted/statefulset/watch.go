package statefulset

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

const (
	// fieldManager is the field manager of the objects of control planes. Existing objects contain it, so it
	// must not change.
	fieldManager = "hostedcontrolplane"
	// managerContainer is the container of the manager's Pod whose image control planes use. The manifests of the
	// release have the same name.
	managerContainer = "manager"
)

// Connection provides clients and caches for the objects of control planes. The manager starts it together with its own
// caches.
type Connection = cluster.Cluster

// Connect returns a connection with caches of the labelled objects in the namespace. The manager calls it at its start,
// before [New], and must start it.
func Connect(access *rest.Config, log logr.Logger, namespace string) (Connection, error) {
	labelled := cache.ByObject{Label: apilabels.SelectorFromSet(apilabels.Set{label: "true"})}
	c, err := cluster.New(access, func(o *cluster.Options) {
		o.Scheme, o.Logger = scheme.Scheme, log
		o.Cache = cache.Options{
			DefaultNamespaces: map[string]cache.Config{namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				&appsv1.StatefulSet{}: labelled, &corev1.Pod{}: labelled, &corev1.Service{}: labelled, &corev1.PersistentVolumeClaim{}: labelled,
			},
		}
		o.Client.Cache = &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the namespace of control planes: %w", err)
	}
	return c, nil
}

// watch notifies subscribers of every change, and of control planes that a change of another one affects. [New] calls
// it once.
func (c *controlPlanes) watch(ctx context.Context, from cache.Cache) error {
	changed := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		object, ok := o.(client.Object)
		if !ok {
			return
		}
		if name := nameOf(object); name != "" {
			c.Notify(name)
		}
		if _, ok := object.(*appsv1.StatefulSet); ok {
			c.notifyOld(ctx)
		}
	}
	for _, kind := range []client.Object{&appsv1.StatefulSet{}, &corev1.Pod{}, &corev1.Service{}, &corev1.PersistentVolumeClaim{}} {
		informer, err := from.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching the objects of control planes: %w", err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) }, DeleteFunc: changed,
		})
		if err != nil {
			return fmt.Errorf("watching the objects of control planes: %w", err)
		}
	}
	return nil
}

// notifyOld notifies subscribers of the control plane that is updated to this program's image next.
func (c *controlPlanes) notifyOld(ctx context.Context) {
	c.mu.Lock()
	mine := c.ownSettings
	c.mu.Unlock()
	if mine == nil { // no state was read yet
		return
	}
	all := &appsv1.StatefulSetList{}
	if err := c.cached.List(ctx, all, client.InNamespace(c.settings.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return // the cache is not synced; all objects are enqueued when it is
	}
	first := nextToUpdate(all.Items, mine.image)
	for i := range all.Items {
		if all.Items[i].Name == first {
			c.Notify(nameOf(&all.Items[i]))
		}
	}
}

// seenWithin limits how long Start waits for its own writes.
const seenWithin = 5 * time.Second

// awaitSeen waits until the cache contains the written StatefulSet. Without it, every event in the meantime
// would start the control plane again. Start calls it after it has written the StatefulSet.
func (c *controlPlanes) awaitSeen(ctx context.Context, name string) {
	ctx, stop := context.WithTimeout(ctx, seenWithin)
	defer stop()
	changed := make(chan struct{}, 1)
	defer c.Subscribe(func(of string) {
		if of == name {
			select {
			case changed <- struct{}{}:
			default: // a change is already pending
			}
		}
	})()
	for {
		set := &appsv1.StatefulSet{}
		err := c.cached.Get(ctx, client.ObjectKey{Namespace: c.settings.Namespace, Name: objectName(name)}, set, client.UnsafeDisableDeepCopy)
		if err == nil && !c.writer.Writes().Stale(set) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
