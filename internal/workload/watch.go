package workload

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// providerIDField is the index over Node.spec.providerID.
const providerIDField = "spec.providerID"

// ClusterMap maps a cluster to the reconcile requests of a controller. Controllers pass it to [Clusters.Changed].
type ClusterMap func(ctx context.Context, cluster client.ObjectKey) []reconcile.Request

// Workloads is the interface through which controllers use workload clusters. [Clusters] implements it, and so does the
// simulation of `slipway plan`.
type Workloads interface {
	Client(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
	Nodes(ctx context.Context, cluster client.ObjectKey, providerID string) ([]corev1.Node, error)
	Watch(ctx context.Context, cluster client.ObjectKey, w WatchRequest) error
	Health(cluster client.ObjectKey) Health
	Changed(controller string, to ClusterMap) source.Source
}

var _ Workloads = &Clusters{}

// subscriber is the queue of a controller.
type subscriber struct {
	ctx   context.Context
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	to    ClusterMap
}

// Changed returns a source that enqueues objects of the controller when a cluster is connected or disconnected, and
// when its probes start or stop failing. A nil map enqueues the Cluster itself. Events of Watch reach the controller
// through the same source, so every controller that calls Watch has to use it.
func (c *Clusters) Changed(controller string, to ClusterMap) source.Source {
	if to == nil {
		to = func(_ context.Context, key client.ObjectKey) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: key}}
		}
	}
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.subs[controller] = append(c.subs[controller], subscriber{ctx: ctx, queue: queue, to: to})
		return nil
	})
}

// notify enqueues the affected objects of all controllers when the connection of a cluster changes.
func (c *Clusters) notify(ctx context.Context, key client.ObjectKey) {
	c.mu.RLock()
	var all []subscriber
	for _, subs := range c.subs {
		all = append(all, subs...)
	}
	c.mu.RUnlock()
	for _, s := range all {
		for _, req := range s.to(ctx, key) {
			s.queue.Add(req)
		}
	}
}

// WatchRequest describes a watch of one kind in a workload cluster. Controllers fill it in for [Clusters.Watch].
type WatchRequest struct {
	// Controller is the name that was passed to Changed.
	Controller string
	// Kind is an empty object of the kind to watch.
	Kind client.Object
	// Map maps an object to reconcile requests.
	Map func(ctx context.Context, obj client.Object) []reconcile.Request
	// Changed, if set, reports whether an update is relevant.
	Changed func(before, after client.Object) bool
}

type watchKey struct {
	controller string
	kind       reflect.Type
}

// Watch enqueues the events of a kind in the controller's queue until the cluster is disconnected. It may be called in
// every reconciliation: each combination of cluster, controller and kind is watched once, and the first call after a
// reconnect starts the watch again. It does not wait for the cache to sync. It returns ErrNotConnected if there is no
// connection.
func (c *Clusters) Watch(ctx context.Context, key client.ObjectKey, w WatchRequest) error {
	conn, err := c.connection(key)
	if err != nil {
		return err
	}
	id := watchKey{controller: w.Controller, kind: reflect.TypeOf(w.Kind)}
	if _, ok := conn.watches.Load(id); ok {
		return nil
	}
	done, err := conn.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	if _, ok := conn.watches.Load(id); ok {
		return nil
	}
	c.mu.RLock()
	subs := c.subs[w.Controller]
	c.mu.RUnlock()
	if len(subs) == 0 {
		return fmt.Errorf("watch %T: %w", w.Kind, errors.New("the controller "+w.Controller+" does not use Changed"))
	}
	informer, err := conn.informer(ctx, w.Kind, c.cfg.Clock.Now())
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(handlerFor(subs, w)); err != nil {
		return fmt.Errorf("watch %T of the workload cluster: %w", w.Kind, err)
	}
	conn.watches.Store(id, struct{}{})
	return nil
}

// change acquires the lock for changes to the set of watches; the caller must call done.
func (c *connection) change(ctx context.Context) (done func(), err error) {
	select {
	case c.changing <- struct{}{}:
		return func() { <-c.changing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// informer returns the informer of a kind and starts it if necessary. The caller must hold the lock from change.
func (c *connection) informer(ctx context.Context, kind client.Object, now time.Time) (cache.Informer, error) {
	informer, err := c.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %T of the workload cluster: %w", kind, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.informers[informer]; !ok && !informer.HasSynced() {
		c.informers[informer] = now
	}
	return informer, nil
}

// indexNodes starts the watch of Nodes, with an index by provider ID, and notifies the controllers when the cache has
// synced.
func (c *Clusters) indexNodes(ctx context.Context, key client.ObjectKey, conn *connection) error {
	if conn.nodes.Load() != nil {
		return nil
	}
	done, err := conn.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	if conn.nodes.Load() != nil {
		return nil
	}
	informer, err := conn.informer(ctx, &corev1.Node{}, c.cfg.Clock.Now())
	if err != nil {
		return err
	}
	if err := conn.cache.IndexField(ctx, &corev1.Node{}, providerIDField, providerIDOf); err != nil {
		return fmt.Errorf("index the Nodes of the workload cluster: %w", err)
	}
	conn.nodes.Store(&syncingInformer{Informer: informer, since: time.Now()})
	go func() {
		if toolscache.WaitForCacheSync(conn.ended, informer.HasSynced) {
			conn.fresh.Note(c.cfg.Clock.Now())
			conn.filled.Store(true)
			c.notify(c.life, key)
		}
	}()
	return nil
}

// nodesFilled reports whether the cache of Nodes has synced. It waits for up to maxWait after the watch was started.
func (c *connection) nodesFilled(ctx context.Context) bool {
	nodes := c.nodes.Load()
	until := nodes.since.Add(maxWait)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !nodes.HasSynced() {
		if time.Now().After(until) {
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func providerIDOf(obj client.Object) []string {
	if n, ok := obj.(*corev1.Node); ok && n.Spec.ProviderID != "" {
		return []string{n.Spec.ProviderID}
	}
	return nil
}

// handlerFor returns an event handler that enqueues requests in the queues of a controller.
func handlerFor(subs []subscriber, w WatchRequest) toolscache.ResourceEventHandler {
	send := func(obj any) {
		o, ok := obj.(client.Object)
		if !ok {
			return
		}
		for _, s := range subs {
			for _, req := range w.Map(s.ctx, o) {
				s.queue.Add(req)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: send,
		UpdateFunc: func(before, after any) {
			old, ok1 := before.(client.Object)
			now, ok2 := after.(client.Object)
			if ok1 && ok2 && w.Changed != nil && !w.Changed(old, now) {
				return
			}
			send(after)
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			send(obj)
		},
	}
}
