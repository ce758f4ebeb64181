package world

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/plan/memory"
)

// object identifies an object. [Collector] and [Providers] refer to an object by it, and look up its current content.
type object struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

func objectOf(u *unstructured.Unstructured) object {
	return object{kind: u.GroupVersionKind(), key: client.ObjectKeyFromObject(u)}
}

// Collector deletes objects without remaining owners, like the garbage collector of Kubernetes. It observes the writes
// of a simulated management cluster.
type Collector struct {
	world      *World
	dependents map[types.UID]map[object]bool
}

// NewCollector starts garbage collection in a simulation. Package plan calls it for each run.
func NewCollector(w *World) *Collector {
	c := &Collector{world: w, dependents: map[types.UID]map[object]bool{}}
	for _, u := range w.API.All() {
		c.note(u)
	}
	w.Observe(c.observe)
	return c
}

// note records the owners of an object.
func (c *Collector) note(u *unstructured.Unstructured) {
	for _, ref := range u.GetOwnerReferences() {
		if c.dependents[ref.UID] == nil {
			c.dependents[ref.UID] = map[object]bool{}
		}
		c.dependents[ref.UID][objectOf(u)] = true
	}
}

func (c *Collector) observe(e memory.Event) {
	if e.New != nil {
		c.note(e.New)
		return
	}
	gone := e.Old.GetUID()
	dependents := slices.SortedFunc(maps.Keys(c.dependents[gone]), func(a, b object) int {
		return cmp.Or(cmp.Compare(a.kind.String(), b.kind.String()), cmp.Compare(a.key.String(), b.key.String()))
	})
	for _, o := range dependents {
		u := c.world.API.Lookup(o.kind.GroupKind(), o.key)
		if u == nil || c.isOwned(u, gone) {
			continue
		}
		_ = c.world.API.Remove(o.kind, o.key, "garbage-collector") // a missing object is already collected
	}
	delete(c.dependents, gone)
}

// isOwned reports whether an object has another existing owner, or no longer references the deleted one.
func (c *Collector) isOwned(u *unstructured.Unstructured, gone types.UID) bool {
	named := false
	for _, ref := range u.GetOwnerReferences() {
		if ref.UID == gone {
			named = true
			continue
		}
		owner := c.world.API.Lookup(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), client.ObjectKey{Namespace: u.GetNamespace(), Name: ref.Name})
		if owner != nil && owner.GetUID() == ref.UID {
			return true
		}
	}
	return !named
}
