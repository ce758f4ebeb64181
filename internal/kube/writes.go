package kube

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxRemembered is how many objects Writes remembers at most.
const maxRemembered = 4096

// Writes remembers the newest resourceVersion written of each object, and what was deleted, by UID.
// The zero value is ready to use.
type Writes struct {
	mu      sync.Mutex
	newest  map[types.UID]string
	deleted map[types.UID]struct{}
}

func (w *Writes) record(obj client.Object) {
	if obj.GetUID() == "" || obj.GetResourceVersion() == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.newest == nil || len(w.newest) >= maxRemembered {
		// Objects that do not exist any more never come up again. To forget the others costs at most one
		// reconciliation of a stale snapshot, which every action has to tolerate anyway.
		w.newest = map[types.UID]string{}
	}
	w.newest[obj.GetUID()] = obj.GetResourceVersion()
}

// Stale reports whether obj was read before the last write of it by this process reached the cache. The
// event that brings the newer one enqueues it.
func (w *Writes) Stale(obj client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	newest, ok := w.newest[obj.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), newest)
	if err == nil && order < 0 {
		return true
	}
	delete(w.newest, obj.GetUID()) // the cache has caught up: nothing to remember
	return false
}

// markDeleted remembers that the API server has accepted the deletion of an object. That is final.
func (w *Writes) markDeleted(uid types.UID) {
	if uid == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deleted == nil || len(w.deleted) >= maxRemembered { // what was forgotten is deleted once more at most
		w.deleted = map[types.UID]struct{}{}
	}
	w.deleted[uid] = struct{}{}
}

// isDeleted reports whether the deletion of an object was accepted, though the cache may not show it yet.
func (w *Writes) isDeleted(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, is := w.deleted[uid]
	return is
}

// KeepOwnFields is a cache transform that drops the managed fields of every program that has nothing to do with this one: they are
// half of an object's size, and not needed here. It keeps those of this program, and those of an implementation that
// this one takes over from. Of an unstructured object, which is another controller's, it drops those of the status too:
// only that controller writes it.
func KeepOwnFields(in any) (any, error) {
	switch o := in.(type) {
	case *unstructured.Unstructured:
		keepOwnEntries(o.Object)
	case client.Object:
		o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return !isOwnManager(e.Manager) && !(e.Manager == FormerManager && e.Subresource == statusSubresource)
		}))
	}
	return in, nil
}

// keepOwnEntries changes the object in place: it is a tree of maps, and a copy takes longer than to decode it.
func keepOwnEntries(object map[string]any) {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	entries, ok := meta["managedFields"].([]any)
	if !ok {
		return
	}
	own := make([]any, 0, len(entries)) // the rest is not to be kept alive behind it
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		manager, _ := entry["manager"].(string)
		if isOwnManager(manager) && entry["subresource"] != "status" {
			own = append(own, e)
		}
	}
	if meta["managedFields"] = own; len(own) == 0 {
		delete(meta, "managedFields")
	}
}

func isOwnManager(manager string) bool {
	return strings.HasPrefix(manager, Prefix) || strings.HasPrefix(manager, CorePrefix)
}
