package rootcause

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Limits of a Reader: objects of one list, and plans.
const (
	maxListed = 5000
	maxPlans  = 100
)

// PlanSource returns the last plans of an object. After an error it is not called again.
type PlanSource func(ctx context.Context, of Ref) ([]Plan, error)

// ReaderOptions configure a [Reader].
type ReaderOptions struct {
	Client client.Reader
	// Mapper maps kinds to their versions, including kinds without a group.
	Mapper meta.RESTMapper
	// Plans is nil if no manager of Slipway is reachable.
	Plans PlanSource
	// Namespace limits the lists. Empty lists all namespaces.
	Namespace string
}

// Reader is a [Graph] that reads from the API when an object is needed. It gets the first object of a kind, and lists the
// kind when a second one is needed. It lists no kind twice, and reads Secrets and ConfigMaps as metadata. It is for one
// computation, and not safe for concurrent use.
type Reader struct {
	ctx context.Context //nolint:containedctx // Graph has no contexts, and a Reader lives for one command
	ReaderOptions

	memory   Memory
	listed   map[schema.GroupKind]bool
	gotten   map[schema.GroupKind]int
	absent   map[Ref]bool
	asked    map[Ref]bool
	problems map[string]bool
	err      error
	plansErr error
}

// NewReader returns a Reader. It sends no request.
func NewReader(ctx context.Context, o ReaderOptions) *Reader {
	return &Reader{
		ctx: ctx, ReaderOptions: o, listed: map[schema.GroupKind]bool{}, gotten: map[schema.GroupKind]int{},
		absent: map[Ref]bool{}, asked: map[Ref]bool{}, problems: map[string]bool{},
	}
}

// Err returns the first error that kept the Reader from reading, other than missing permissions and kinds.
func (r *Reader) Err() error { return r.err }

// PlansErr returns the error of the PlanSource.
func (r *Reader) PlansErr() error { return r.plansErr }

// Unreadable returns the kinds that the user may not read, sorted.
func (r *Reader) Unreadable() []string {
	var out []string
	for kind := range r.problems {
		out = append(out, kind)
	}
	slices.Sort(out)
	return out
}

// coreKinds returns the kinds of Cluster API's core that other objects own.
func coreKinds() []schema.GroupKind {
	var out []schema.GroupKind
	for _, kind := range []string{"MachineDeployment", "MachineHealthCheck", "MachinePool", "MachineSet", "Machine"} {
		out = append(out, schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: kind})
	}
	return out
}

// Roots lists the objects from which a search for everything that is wrong begins.
func (r *Reader) Roots() []Ref {
	kinds := []schema.GroupKind{
		{Group: clusterv1.GroupVersion.Group, Kind: clusterv1.ClusterKind}, {Group: clusterv1.GroupVersion.Group, Kind: "ClusterClass"},
		{Group: addonsv1.GroupVersion.Group, Kind: "ClusterResourceSet"}, {Group: runtimev1.GroupVersion.Group, Kind: "ExtensionConfig"},
	}
	var out []Ref
	for _, kind := range append(kinds, coreKinds()...) {
		r.list(kind)
		out = append(out, r.memory.ofKind(kind)...)
	}
	return out
}

// ofKind returns the objects of a kind, sorted.
func (m *Memory) ofKind(kind schema.GroupKind) (out []Ref) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for ref := range m.objects {
		if ref.GroupKind() == kind {
			out = append(out, ref)
		}
	}
	slices.SortFunc(out, Ref.compare)
	return out
}

// Get implements [Graph].
func (r *Reader) Get(ref Ref) (*unstructured.Unstructured, bool) {
	if u, found := r.memory.Get(ref); found {
		return u, true
	}
	kind := ref.GroupKind()
	if r.absent[ref] || r.err != nil {
		return nil, false
	}
	if r.isListed(ref) {
		return nil, false
	}
	if r.gotten[kind] > 0 && (ref.Namespace == "" || r.covers(ref.Namespace)) {
		r.list(kind)
		if u, found := r.memory.Get(ref); found || r.isListed(ref) {
			return u, found
		}
	}
	r.gotten[kind]++
	return r.get(ref)
}

// covers reports whether the lists of the Reader include a namespace.
func (r *Reader) covers(namespace string) bool { return r.Namespace == "" || r.Namespace == namespace }

func (r *Reader) isListed(ref Ref) bool {
	return r.listed[ref.GroupKind()] && (ref.Namespace == "" || r.covers(ref.Namespace))
}

func (r *Reader) get(ref Ref) (*unstructured.Unstructured, bool) {
	mapping, ok := r.mapping(ref.GroupKind())
	if !ok {
		return nil, false
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	u, err := r.read(mapping, key)
	if err != nil {
		r.absent[ref] = true
		if !apierrors.IsNotFound(err) {
			r.note(ref.GroupKind(), err)
		}
		return nil, false
	}
	r.memory.Add(u)
	return u, true
}

func (r *Reader) read(mapping *meta.RESTMapping, key client.ObjectKey) (*unstructured.Unstructured, error) {
	if !metadataOnly(mapping.GroupVersionKind.GroupKind()) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(mapping.GroupVersionKind)
		return u, r.Client.Get(r.ctx, key, u)
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := r.Client.Get(r.ctx, key, object); err != nil {
		return nil, err
	}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	content, err := converter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}

// metadataOnly reports whether only the metadata of a kind is read, because its data is confidential.
func metadataOnly(kind schema.GroupKind) bool {
	return kind.Group == "" && (kind.Kind == "Secret" || kind.Kind == "ConfigMap")
}

// list lists a kind once. Secrets and ConfigMaps are never listed.
func (r *Reader) list(kind schema.GroupKind) {
	if r.listed[kind] || r.err != nil || metadataOnly(kind) {
		return
	}
	mapping, ok := r.mapping(kind)
	if !ok {
		return
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
	options := []client.ListOption{client.Limit(maxListed)}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		options = append(options, client.InNamespace(r.Namespace))
	}
	if err := r.Client.List(r.ctx, list, options...); err != nil {
		r.note(kind, err)
		return
	}
	r.listed[kind] = list.GetContinue() == ""
	for i := range list.Items {
		r.memory.Add(&list.Items[i])
	}
}

// note records why a kind cannot be read. Missing permissions do not end the search.
func (r *Reader) note(kind schema.GroupKind, err error) {
	if apierrors.IsForbidden(err) || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		r.problems[kind.Kind] = true
		r.listed[kind] = true // further requests would fail, too
		return
	}
	if r.err == nil {
		r.err = fmt.Errorf("reading %s: %w", kind, err)
	}
}

func (r *Reader) mapping(kind schema.GroupKind) (*meta.RESTMapping, bool) {
	mapping, err := r.Mapper.RESTMapping(kind)
	return mapping, err == nil
}

// Resolve implements [Graph]. Kinds of Cluster API and its providers take precedence over others with the same name. Nodes
// and Pods in messages are those of a workload cluster.
func (r *Reader) Resolve(kind, namespace, name string) (Ref, bool) {
	if slices.Contains([]string{"Node", "Pod", "Event"}, kind) || r.err != nil {
		return Ref{}, false
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	found, err := r.Mapper.KindsFor(schema.GroupVersionResource{Resource: resource.Resource})
	if err != nil {
		return Ref{}, false
	}
	found = slices.DeleteFunc(slices.Clone(found), func(k schema.GroupVersionKind) bool { return k.Kind != kind })
	slices.SortStableFunc(found, func(a, b schema.GroupVersionKind) int { return cmp.Compare(foreignness(a.Group), foreignness(b.Group)) })
	for _, gvk := range found[:min(len(found), 3)] {
		ref := Ref{gvk.Group, kind, namespace, name}
		if mapping, ok := r.mapping(gvk.GroupKind()); ok && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			ref.Namespace = ""
		}
		if _, exists := r.Get(ref); exists {
			return ref, true
		}
	}
	return Ref{}, false
}

func foreignness(group string) int {
	switch {
	case strings.HasSuffix(group, "cluster.x-k8s.io"):
		return 0
	case group == "":
		return 1
	}
	return 2
}

// Owned implements [Graph]. It lists the kinds of Cluster API's core, and finds other owned objects if they have been read.
func (r *Reader) Owned(of Ref) []Ref {
	if slices.Contains([]string{clusterv1.ClusterKind, "MachineDeployment", "MachinePool", "MachineSet"}, of.Kind) || strings.HasPrefix(of.Group, "controlplane.") {
		for _, kind := range coreKinds() {
			r.list(kind)
		}
	}
	return r.memory.Owned(of)
}

// Plans implements [Graph].
func (r *Reader) Plans(of Ref) []Plan {
	if r.ReaderOptions.Plans == nil || r.plansErr != nil || !r.asked[of] && len(r.asked) >= maxPlans {
		return nil
	}
	if r.asked[of] {
		return r.memory.Plans(of)
	}
	r.asked[of] = true
	plans, err := r.ReaderOptions.Plans(r.ctx, of)
	if err != nil && !errors.Is(err, ErrNoPlans) {
		r.plansErr = err
		return nil
	}
	r.memory.SetPlans(of, plans)
	return plans
}

// ErrNoPlans is returned by a [PlanSource] for an object that its manager has not reconciled or that the user may not get.
var ErrNoPlans = errors.New("no plans")

// HealthChecks implements [Graph].
func (r *Reader) HealthChecks(namespace, cluster string) []*clusterv1.MachineHealthCheck {
	r.list(schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "MachineHealthCheck"})
	return r.memory.HealthChecks(namespace, cluster)
}
