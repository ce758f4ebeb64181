package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Admission defaults and validates writes like webhooks. It may read the API. Package manager/webhook implements it
// with the rules of the webhooks.
type Admission interface {
	// Admit returns the object to store, or the reason for rejecting it. For a create, old is nil.
	Admit(ctx context.Context, old, wanted client.Object, dryRun bool) (client.Object, error)
	// RefuseDeletion returns the reason why an object may not be deleted.
	RefuseDeletion(ctx context.Context, o client.Object) error
}

// Options configures an API.
type Options struct {
	// Scheme contains the Go types. Required.
	Scheme *runtime.Scheme
	// Kinds are the custom kinds; nil: none.
	Kinds *Kinds
	// Now is the clock. Required.
	Now func() time.Time
	// Admission validates writes to kinds of the scheme; nil: all writes are admitted.
	Admission func(live client.Reader) Admission
}

// API stores objects: it takes the place of the API server while `slipway plan` runs the controllers. Package world
// creates one for the management cluster and one for each simulated workload cluster. It is safe for concurrent use.
type API struct {
	scheme    *runtime.Scheme
	now       func() time.Time
	admission Admission

	mu      sync.Mutex
	kinds   map[schema.GroupKind]*kind
	objects map[schema.GroupKind]map[client.ObjectKey]*object
	indexes map[schema.GroupKind][]*index
	version uint64
	uids    map[types.UID]bool
	names   uint64
	events  []Event
}

// object is a stored object and is immutable. Its other forms are created when they are first read.
type object struct {
	content *unstructured.Unstructured
	mu      sync.Mutex
	forms   map[form]client.Object
}

// Event is a write that changed an object. Package world passes it to the caches of the controllers and to the
// simulated components.
type Event struct {
	Kind schema.GroupVersionKind
	Key  client.ObjectKey
	// Old is nil for a created object, New for a removed one. Neither may be modified.
	Old, New *unstructured.Unstructured
	// By is the field manager of the write. Subresource is the written subresource, or empty.
	By, Subresource string

	old, new *object
}

// New returns an API without objects. Package world calls it.
func New(o Options) *API {
	a := &API{
		scheme: o.Scheme, now: o.Now, kinds: map[schema.GroupKind]*kind{}, uids: map[types.UID]bool{},
		objects: map[schema.GroupKind]map[client.ObjectKey]*object{}, indexes: map[schema.GroupKind][]*index{}, version: 1,
	}
	if o.Admission != nil {
		a.admission = o.Admission(a.Reader(nil))
	}
	if o.Kinds != nil {
		maps.Copy(a.kinds, o.Kinds.kinds)
	}
	return a
}

// Events returns the events since the previous call, in order. Package world calls it after each reconciliation and
// delivers them.
func (a *API) Events() []Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.events
	a.events = nil
	return out
}

// Load stores an object of the copied management cluster without admission and without an event. It sets metadata that
// only an API server sets, such as the UID, if it is missing. Package plan calls it for each CRD and object of the
// copy, before a run starts.
func (a *API) Load(u *unstructured.Unstructured) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, err := a.kindOf(u.GroupVersionKind())
	if err != nil {
		return err
	}
	u = u.DeepCopy()
	u.SetGroupVersionKind(k.gvk)
	a.uids[u.GetUID()] = true
	if u.GetUID() == "" {
		u.SetUID(a.newUID(k, client.ObjectKeyFromObject(u)))
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(a.time())
	}
	if u.GetGeneration() == 0 {
		u.SetGeneration(1)
	}
	a.version = max(a.version, versionOf(u))
	if u.GetResourceVersion() == "" {
		u.SetResourceVersion(a.nextVersion())
	}
	a.set(k, client.ObjectKeyFromObject(u), &object{content: u})
	return nil
}

func versionOf(u *unstructured.Unstructured) uint64 {
	n, err := strconv.ParseUint(u.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Lookup returns an object, which must not be modified, or nil. The simulated components of package world call it.
func (a *API) Lookup(kind schema.GroupKind, key client.ObjectKey) *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o := a.objects[kind][key]; o != nil {
		return o.content
	}
	return nil
}

// All returns all objects, sorted by kind, namespace and name. They must not be modified. Package plan compares the
// objects before and after the change with it.
func (a *API) All() []*unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, of := range a.objects {
		for _, o := range of {
			out = append(out, o.content)
		}
	}
	slices.SortFunc(out, func(x, y *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(x.GroupVersionKind().GroupKind().String(), y.GroupVersionKind().GroupKind().String()),
			compareKeys(client.ObjectKeyFromObject(x), client.ObjectKeyFromObject(y)))
	})
	return out
}

// OfKind returns all objects of a kind, sorted by namespace and name. They must not be modified.
func (a *API) OfKind(kind schema.GroupKind) []*unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, key := range slices.SortedFunc(maps.Keys(a.objects[kind]), compareKeys) {
		out = append(out, a.objects[kind][key].content)
	}
	return out
}

func compareKeys(a, b client.ObjectKey) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// Mapper returns the kinds that the API serves. The clients and the simulated manager return it to controllers.
func (a *API) Mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range a.kinds {
		scope := meta.RESTScope(meta.RESTScopeRoot)
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		m.Add(k.gvk, scope)
	}
	for gvk := range a.scheme.AllKnownTypes() {
		if isBuiltIn(gvk.Group) && gvk.Version != runtime.APIVersionInternal {
			m.Add(gvk, meta.RESTScopeNamespace)
		}
	}
	return m
}

// isBuiltIn reports whether the kinds of a group are built into Kubernetes and have no CRD.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io") && !strings.HasSuffix(group, "cluster.x-k8s.io")
}

// kindOf returns a kind in the version in which it is stored. The lock must be held.
func (a *API) kindOf(gvk schema.GroupVersionKind) (*kind, error) {
	if k := a.kinds[gvk.GroupKind()]; k != nil {
		return k, nil
	}
	if isBuiltIn(gvk.Group) {
		k := &kind{gvk: gvk, hasStatus: true}
		a.kinds[gvk.GroupKind()] = k
		return k, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

func (a *API) nextVersion() string {
	a.version++
	return strconv.FormatUint(a.version, 10)
}

// newUID returns an unused UID. It depends on the object and not on the time, because controllers sort by it and the
// same change must always have the same plan.
func (a *API) newUID(k *kind, key client.ObjectKey) types.UID {
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", k.gvk.GroupKind(), key, n))
		if uid := types.UID(fmt.Sprintf("whatif-%x", sum[:12])); !a.uids[uid] {
			a.uids[uid] = true
			return uid
		}
	}
}

// set replaces a stored object and updates the indexes; next is nil for a removal. The lock must be held.
func (a *API) set(k *kind, key client.ObjectKey, next *object) {
	kind := k.gvk.GroupKind()
	of := a.objects[kind]
	if of == nil {
		of = map[client.ObjectKey]*object{}
		a.objects[kind] = of
	}
	for _, i := range a.indexes[kind] {
		i.replace(a, key, of[key], next)
	}
	if next == nil {
		delete(of, key)
		return
	}
	of[key] = next
}

// keys returns the sorted keys of a kind. The lock must be held. The reads and the indexes call it, so that all lists
// have the same order.
func (a *API) keys(kind schema.GroupKind) []client.ObjectKey {
	return slices.SortedFunc(maps.Keys(a.objects[kind]), compareKeys)
}

// empty returns an object without content.
func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}
