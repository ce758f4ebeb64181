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

// maxRemembered is the maximum number of objects in Writes.
const maxRemembered = 4096

// Writes records, by UID, the newest resourceVersion written for each object, and deleted objects. Each [Writer] adds
// its writes; the driver (package reconciler) skips an object while its cached version is older. The zero value is
// ready to use.
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
		// Entries of deleted objects are never used again. Dropping the others costs at most one reconciliation with a
		// stale cache, which every action has to tolerate anyway.
		w.newest = map[types.UID]string{}
	}
	w.newest[obj.GetUID()] = obj.GetResourceVersion()
}

// Stale reports whether obj was read before the cache reflected the last write by this process. The event for the newer
// version enqueues the object. The driver checks the reconciled object, and controllers check the objects that they
// count.
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
	delete(w.newest, obj.GetUID()) // the cache has caught up
	return false
}

// markDeleted records that the API server has accepted the deletion of an object, which is final.
func (w *Writes) markDeleted(uid types.UID) {
	if uid == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deleted == nil || len(w.deleted) >= maxRemembered { // forgotten objects are deleted once more at most
		w.deleted = map[types.UID]struct{}{}
	}
	w.deleted[uid] = struct{}{}
}

// isDeleted reports whether the deletion of an object was accepted, although the cache may not reflect it yet.
func (w *Writes) isDeleted(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, is := w.deleted[uid]
	return is
}

// PruneManagedFields is the transform of the manager's cache: it drops the managed fields of unrelated programs, which
// are half of an object's size. It preserves the entries of Slipway's managers, of managers with [CoreManagerPrefix],
// and the status entries of [upstreamManager], because [Writer] compares them. From unstructured objects, which belong
// to other controllers, it also drops all status entries, because only those controllers write the status.
func PruneManagedFields(in any) (any, error) {
	switch o := in.(type) {
	case *unstructured.Unstructured:
		pruneEntries(o.Object)
	case client.Object:
		o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return !isOwnManager(e.Manager) && !(e.Manager == upstreamManager && e.Subresource == statusSubresource)
		}))
	}
	return in, nil
}

// pruneEntries changes the object in place, because copying a tree of maps takes longer than decoding it.
func pruneEntries(object map[string]any) {
	meta, ok := object["metadata"].(map[string]any)
	if !ok {
		return
	}
	entries, ok := meta["managedFields"].([]any)
	if !ok {
		return
	}
	own := make([]any, 0, len(entries)) // a new array, so that dropped entries can be garbage collected
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
	return strings.HasPrefix(manager, ManagerPrefix) || strings.HasPrefix(manager, CoreManagerPrefix)
}
