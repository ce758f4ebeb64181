package rootcause

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// nameKey identifies the objects that a message may name.
type nameKey struct{ kind, namespace, name string }

// Memory is a [Graph] over objects in memory. The zero value is empty and ready to use. It is safe for concurrent use.
type Memory struct {
	mu      sync.RWMutex
	objects map[Ref]*unstructured.Unstructured
	byName  map[nameKey]map[Ref]bool
	byOwner map[Ref]map[Ref]bool
	plans   map[Ref][]Plan
	limits  map[Ref]map[string]bool
}

// RefOf returns the reference to an object. Packages mirror and ui identify objects with it.
func RefOf(u *unstructured.Unstructured) Ref {
	gvk := u.GroupVersionKind()
	return Ref{gvk.Group, gvk.Kind, u.GetNamespace(), u.GetName()}
}

// Add adds an object, or replaces an older version of it. The caller must not change the object afterwards. The data of
// Secrets is not stored. Package mirror adds the objects of its watches, and [Reader] the objects that it has read.
func (m *Memory) Add(u *unstructured.Unstructured) {
	ref := RefOf(u)
	if ref.Group == "" && ref.Kind == "Secret" {
		u = metadataOf(u)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(ref)
	if m.objects == nil {
		m.objects, m.byName, m.byOwner = map[Ref]*unstructured.Unstructured{}, map[nameKey]map[Ref]bool{}, map[Ref]map[Ref]bool{}
	}
	m.objects[ref] = u
	put(m.byName, nameKey{ref.Kind, ref.Namespace, ref.Name}, ref)
	for _, owner := range ownersOf(u) {
		put(m.byOwner, owner, ref)
	}
}

// Remove removes an object and its plans. Package mirror calls it.
func (m *Memory) Remove(ref Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(ref)
	delete(m.plans, ref)
	delete(m.limits, ref)
}

func (m *Memory) remove(ref Ref) {
	old, known := m.objects[ref]
	if !known {
		return
	}
	delete(m.objects, ref)
	take(m.byName, nameKey{ref.Kind, ref.Namespace, ref.Name}, ref)
	for _, owner := range ownersOf(old) {
		take(m.byOwner, owner, ref)
	}
}

// SetPlans replaces the plans of an object. They are removed with the object, and ignored if there is no such object.
// [Reader] and package ui call it.
func (m *Memory) SetPlans(ref Ref, plans []Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.objects[ref]; !known || len(plans) == 0 {
		delete(m.plans, ref)
		return
	}
	if m.plans == nil {
		m.plans = map[Ref][]Plan{}
	}
	m.plans[ref] = plans
}

// Get implements [Graph].
func (m *Memory) Get(ref Ref) (*unstructured.Unstructured, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	u, found := m.objects[ref]
	return u, found
}

// IsMissing implements [Graph]. The memory may not have all objects, so that none is known to be missing.
func (m *Memory) IsMissing(Ref) bool { return false }

// Resolve implements [Graph]. Objects without a namespace are found from every namespace.
func (m *Memory) Resolve(kind, namespace, name string) (Ref, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, key := range []nameKey{{kind, namespace, name}, {kind, "", name}} {
		if refs := m.byName[key]; len(refs) > 0 {
			return sortedRefs(refs)[0], true
		}
	}
	return Ref{}, false
}

// Owned implements [Graph].
func (m *Memory) Owned(of Ref) []Ref {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return sortedRefs(m.byOwner[of])
}

// Plans implements [Graph].
func (m *Memory) Plans(of Ref) []Plan {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.plans[of]
}

// BeginSearch implements [Graph].
func (m *Memory) BeginSearch(of Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.limits, of)
}

// ReachLimit implements [Graph].
func (m *Memory) ReachLimit(of Ref, limit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.limits == nil {
		m.limits = map[Ref]map[string]bool{}
	}
	if m.limits[of] == nil {
		m.limits[of] = map[string]bool{}
	}
	m.limits[of][limit] = true
}

// Limits returns the limits that the last searches for the objects have reached, so that explanations may be
// incomplete. `slipway explain` and `slipway get` print them.
func (m *Memory) Limits() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := map[string]bool{}
	for _, limits := range m.limits {
		maps.Copy(all, limits)
	}
	return slices.Sorted(maps.Keys(all))
}

// HealthChecks implements [Graph].
func (m *Memory) HealthChecks(namespace, cluster string) (out []*clusterv1.MachineHealthCheck) {
	for _, ref := range m.Owned(clusterRef(namespace, cluster)) {
		if ref.Group != clusterv1.GroupVersion.Group || ref.Kind != "MachineHealthCheck" {
			continue
		}
		if u, found := m.Get(ref); found {
			if check := healthCheckOf(u, cluster); check != nil {
				out = append(out, check)
			}
		}
	}
	return out
}

func clusterRef(namespace, name string) Ref {
	return Ref{clusterv1.GroupVersion.Group, clusterv1.ClusterKind, namespace, name}
}

// ownersOf returns the owners of an object. An object without an owner that belongs to a Cluster is owned by it.
func ownersOf(u *unstructured.Unstructured) (out []Ref) {
	references := u.GetOwnerReferences()
	for _, owner := range references[:min(len(references), maxConditions)] {
		group, _, grouped := strings.Cut(owner.APIVersion, "/")
		if !grouped {
			group = ""
		}
		out = append(out, Ref{group, owner.Kind, u.GetNamespace(), owner.Name})
	}
	if len(out) > 0 {
		return out
	}
	if name := newObject(RefOf(u), u).cluster(); name != "" && RefOf(u) != clusterRef(u.GetNamespace(), name) {
		out = append(out, clusterRef(u.GetNamespace(), name))
	}
	return out
}

// metadataOf returns the metadata of an object.
func metadataOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	if metadata, found := u.Object["metadata"]; found {
		out.Object["metadata"] = metadata
	}
	annotations := maps.Clone(out.GetAnnotations())
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration") // it has the data
	out = out.DeepCopy()
	out.SetAnnotations(annotations)
	return out
}

func put[K comparable](index map[K]map[Ref]bool, key K, ref Ref) {
	if index[key] == nil {
		index[key] = map[Ref]bool{}
	}
	index[key][ref] = true
}

func take[K comparable](index map[K]map[Ref]bool, key K, ref Ref) {
	delete(index[key], ref)
	if len(index[key]) == 0 {
		delete(index, key)
	}
}

func sortedRefs(refs map[Ref]bool) []Ref {
	return slices.SortedFunc(maps.Keys(refs), Ref.compare)
}

// Decode converts an object to its Go type. It reports false if a field has another type than in the API. Packages
// fleet and cli decode the objects of a graph with it.
func Decode[T any](u *unstructured.Unstructured) (*T, bool) {
	out := new(T)
	return out, converter.FromUnstructured(u.Object, out) == nil
}
