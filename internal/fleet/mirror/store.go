package mirror

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fleet"
	"github.com/slipwayhq/slipway/internal/rootcause"
)

// maxOwners is the number of owner references that are followed from an object to its Cluster.
const maxOwners = 6

// Change is a change of one object. Object is its last state. [Options].OnChange gets it.
type Change struct {
	Of      rootcause.Ref
	Object  *unstructured.Unstructured
	Deleted bool
}

// Store has the objects of a management cluster. It implements the graph of package rootcause. It is safe for concurrent
// use; callers must not change the objects that it returns.
type Store struct {
	*rootcause.Memory

	trimmer *trimmer
	// onChange is called after each change, without a lock.
	onChange func(Change)
	// isComplete reports whether the Store has all objects of a kind; nil: no.
	isComplete func(schema.GroupKind) bool

	mu      sync.RWMutex
	objects map[schema.GroupKind]map[fleet.Key]*unstructured.Unstructured
}

// newStore returns an empty Store. The function, which may be nil, is called after each change.
func newStore(onChange func(Change)) *Store {
	if onChange == nil {
		onChange = func(Change) {}
	}
	return &Store{Memory: &rootcause.Memory{}, trimmer: newTrimmer(), onChange: onChange, objects: map[schema.GroupKind]map[fleet.Key]*unstructured.Unstructured{}}
}

// Put stores an object, which it may change. It replaces an object of the same name. A write that changes nothing of what is
// stored is not reported as a change. The objects of one kind are put one after the other. [Mirror.Load] stores each
// listed object with it.
func (s *Store) Put(u *unstructured.Unstructured) { s.put(s.trimmer.trim(u)) }

// put stores a trimmed object.
func (s *Store) put(u *unstructured.Unstructured) {
	of := rootcause.RefOf(u)
	key := fleet.Key{Namespace: of.Namespace, Name: of.Name}
	s.mu.RLock()
	known := s.objects[of.GroupKind()][key]
	s.mu.RUnlock()
	if known != nil && isSameVersion(known, u) {
		return
	}
	s.mu.Lock()
	if s.objects[of.GroupKind()] == nil {
		s.objects[of.GroupKind()] = map[fleet.Key]*unstructured.Unstructured{}
	}
	s.objects[of.GroupKind()][key] = u
	s.mu.Unlock()
	s.Add(u)
	if known == nil || !reflect.DeepEqual(contentOf(known), contentOf(u)) {
		s.onChange(Change{Of: of, Object: u})
	}
}

// IsMissing implements the graph of package rootcause: an object of a kind that is copied completely is missing if the Store does
// not have it.
func (s *Store) IsMissing(of rootcause.Ref) bool {
	_, found := s.Get(of)
	return !found && s.isComplete != nil && s.isComplete(of.GroupKind())
}

// isSameVersion reports whether two objects of the same name are the same state of one object.
func isSameVersion(a, b *unstructured.Unstructured) bool {
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() != "" && a.GetResourceVersion() == b.GetResourceVersion() && a.GetAPIVersion() == b.GetAPIVersion()
}

// contentOf returns what is compared of a stored object: everything but its resource version, with the conditions in the
// order of their types, because controllers that do not share one order write them again and again.
func contentOf(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	if metadata, ok := out["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "resourceVersion")
		out["metadata"] = metadata
	}
	if status, ok := out["status"].(map[string]any); ok {
		if conditions, ok := status["conditions"].([]any); ok {
			status, conditions = maps.Clone(status), slices.Clone(conditions)
			slices.SortStableFunc(conditions, func(a, b any) int { return cmp.Compare(conditionType(a), conditionType(b)) })
			status["conditions"] = conditions
			out["status"] = status
		}
	}
	return out
}

func conditionType(condition any) string {
	fields, _ := condition.(map[string]any)
	name, _ := fields["type"].(string)
	return name
}

// Drop removes an object. The watches call it.
func (s *Store) Drop(of rootcause.Ref) {
	key := fleet.Key{Namespace: of.Namespace, Name: of.Name}
	s.mu.Lock()
	last := s.objects[of.GroupKind()][key]
	delete(s.objects[of.GroupKind()], key)
	s.mu.Unlock()
	if last == nil {
		return
	}
	s.Remove(of)
	s.onChange(Change{Of: of, Object: last, Deleted: true})
}

// Objects returns the objects of a kind, sorted by namespace and name; all namespaces if the namespace is empty.
// `slipway get` and the [Reader] list with it.
func (s *Store) Objects(kind schema.GroupKind, namespace string) []*unstructured.Unstructured {
	s.mu.RLock()
	out := make([]*unstructured.Unstructured, 0, len(s.objects[kind]))
	for key, u := range s.objects[kind] {
		if namespace == "" || key.Namespace == namespace {
			out = append(out, u)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// ClustersOf returns the clusters that an object belongs to: by its own name, its label, its spec, its owners, or, for a
// ClusterClass, the clusters of the class. A change of the object makes the rows of these clusters stale.
func (s *Store) ClustersOf(u *unstructured.Unstructured) []fleet.Key {
	for range maxOwners {
		if u == nil {
			return nil
		}
		of := rootcause.RefOf(u)
		if of.GroupKind() == clusterKind() {
			return []fleet.Key{{Namespace: of.Namespace, Name: of.Name}}
		}
		if name := clusterNameOf(u); name != "" {
			return []fleet.Key{{Namespace: of.Namespace, Name: name}}
		}
		if of.Group == clusterv1.GroupVersion.Group && of.Kind == "ClusterClass" {
			return s.clustersOfClass(of)
		}
		u = s.owner(u)
	}
	return nil
}

func clusterNameOf(u *unstructured.Unstructured) string {
	if name := u.GetLabels()[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	if u.GroupVersionKind().Group != clusterv1.GroupVersion.Group {
		return ""
	}
	name, _, _ := unstructured.NestedString(u.Object, "spec", "clusterName")
	return name
}

// owner returns the first owner that is in the Store.
func (s *Store) owner(u *unstructured.Unstructured) *unstructured.Unstructured {
	for _, r := range u.GetOwnerReferences() {
		group := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group
		if owner, ok := s.Get(rootcause.Ref{Group: group, Kind: r.Kind, Namespace: u.GetNamespace(), Name: r.Name}); ok {
			return owner
		}
	}
	return nil
}

func (s *Store) clustersOfClass(class rootcause.Ref) (out []fleet.Key) {
	for _, u := range s.Objects(clusterKind(), "") {
		name, _, _ := unstructured.NestedString(u.Object, "spec", "topology", "classRef", "name")
		namespace, _, _ := unstructured.NestedString(u.Object, "spec", "topology", "classRef", "namespace")
		if name == class.Name && cmp.Or(namespace, u.GetNamespace()) == class.Namespace {
			out = append(out, fleet.Key{Namespace: u.GetNamespace(), Name: u.GetName()})
		}
	}
	return out
}
