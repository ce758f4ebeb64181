package topology

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/slipwayhq/slipway/internal/topology"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// created remembers the workers that this process created, until the cache shows them: the names of workers are always the same for the
// same name template, but the class may get another one in between. What other processes created before this one leads is in the cache.
// The zero value is ready to use.
type created struct {
	mu sync.Mutex
	// workers by the Cluster.
	workers map[client.ObjectKey][]worker
}

// worker is a MachineDeployment or a MachinePool.
type worker struct {
	kind schema.GroupVersionKind
	name string
}

// note remembers one that is about to be created.
func (c *created) note(cluster client.ObjectKey, o *unstructured.Unstructured) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers == nil {
		c.workers = map[client.ObjectKey][]worker{}
	}
	if w := (worker{o.GroupVersionKind(), o.GetName()}); !slices.Contains(c.workers[cluster], w) {
		c.workers[cluster] = append(c.workers[cluster], w)
	}
}

// unseen returns those whose names are not among the seen, and forgets the others.
func (c *created) unseen(cluster client.ObjectKey, seen map[string]bool) []worker {
	return c.forget(cluster, func(w worker) bool { return seen[w.name] })
}

// forget forgets those for which over is true, and returns the others, sorted.
func (c *created) forget(cluster client.ObjectKey, over func(worker) bool) []worker {
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

// lookUp reads the workers of this process past the cache, which does not show them. One that is not there, or is not of the topology, is
// forgotten: the cache would never show it.
func (c *Controller) lookUp(ctx context.Context, s Snapshot) (Snapshot, error) {
	key := client.ObjectKeyFromObject(s.Cluster)
	s.LookedUp = true
	for _, w := range s.Unseen {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(w.kind)
		err := c.live.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: w.name}, o)
		if client.IgnoreNotFound(err) != nil {
			return s, err
		}
		if apierrors.IsNotFound(err) || !topology.IsOf(s.Cluster, o) {
			s.Unseen = c.created.forget(key, func(other worker) bool { return other == w })
		}
	}
	return s, nil
}
