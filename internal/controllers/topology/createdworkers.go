package topology

import (
	"context"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/topology"
)

// createdWorkers records the workers (MachineDeployments and MachinePools) that this process created until the cache
// shows them, so that the controller creates none twice. The names of workers are deterministic for a name template,
// but the ClusterClass may get another template in the meantime. Workers that other processes created before this one
// became the leader are in the cache. The controller has one instance. The zero value is ready to use.
type createdWorkers struct {
	mu sync.Mutex
	// workers contains the workers of each Cluster.
	workers map[client.ObjectKey][]worker
}

// worker is a MachineDeployment or a MachinePool.
type worker struct {
	kind schema.GroupVersionKind
	name string
}

// note records a worker that is about to be created. create (act.go) calls it before the request.
func (c *createdWorkers) note(cluster client.ObjectKey, o *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers == nil {
		c.workers = map[client.ObjectKey][]worker{}
	}
	if w := (worker{o.GroupVersionKind(), o.GetName()}); !slices.Contains(c.workers[cluster], w) {
		c.workers[cluster] = append(c.workers[cluster], w)
	}
}

// unseen returns the recorded workers whose names are not in seen, and removes the others. observe calls it with the
// workers in the cache.
func (c *createdWorkers) unseen(cluster client.ObjectKey, seen map[string]bool) []worker {
	return c.forget(cluster, func(w worker) bool { return seen[w.name] })
}

// forget removes the workers for which over returns true, and returns the others, sorted.
func (c *createdWorkers) forget(cluster client.ObjectKey, over func(worker) bool) []worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(c.workers[cluster]), over)
	if len(left) == 0 {
		delete(c.workers, cluster)
		return nil
	}
	slices.SortFunc(left, func(a, b worker) int { return strings.Compare(a.name, b.name) })
	c.workers[cluster] = left
	return slices.Clone(left)
}

// readUnseenWorkers reads the recorded workers from the API server, before a worker is created. A worker that does not
// exist, or does not belong to the topology, is removed from the record, because the cache would never show it. The
// Read function of the controller (act.go) calls it when decide requests it.
func (c *controller) readUnseenWorkers(ctx context.Context, s snapshot) (snapshot, error) {
	key := client.ObjectKeyFromObject(s.Cluster)
	s.LookedUp = true
	for _, w := range s.Unseen {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(w.kind)
		err := c.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: w.name}, o)
		if client.IgnoreNotFound(err) != nil {
			return s, err
		}
		if apierrors.IsNotFound(err) || !topology.IsOwnedBy(s.Cluster, o) {
			s.Unseen = c.created.forget(key, func(other worker) bool { return other == w })
		}
	}
	return s, nil
}
