package rootcause

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	planev1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/redact"
)

// Limits of a Reader.
const (
	// pageSize is the number of objects of one response, and maxPages the number of responses for a kind.
	pageSize = 1000
	maxPages = 50
	maxPlans = 100
	// maxGets is the number of objects that are read one by one. Messages of tenants could name any number.
	maxGets = 200
	// maxSameName is the number of kinds of the same name that are considered for a name in a message.
	maxSameName = 3
)

// PlanSource returns the last plans of an object. After an error it is not called again. `slipway explain` reads them
// from the manager.
type PlanSource func(ctx context.Context, of Ref) ([]Plan, error)

// ReaderOptions configure a [Reader]. `slipway explain` and `slipway describe cluster` fill them in.
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
// kind when a second one is needed. It lists no kind twice, reads Secrets and ConfigMaps as metadata, and limits the number of
// requests. It is for one computation, and not safe for concurrent use. `slipway explain` and `slipway describe
// cluster` create one.
type Reader struct {
	ctx context.Context //nolint:containedctx // Graph has no contexts, and a Reader lives for one command
	ReaderOptions

	memory Memory
	// listed has the kinds that were listed completely, and tried the kinds for which that was tried.
	listed, tried map[schema.GroupKind]bool
	gotten        map[schema.GroupKind]int
	// absent has the objects that cannot be read, and missing those of them that do not exist.
	absent, missing map[Ref]bool
	asked           map[Ref]bool
	gets            int
	// unreadable has the reasons why kinds cannot be read, and limits the limits that were reached.
	unreadable map[schema.GroupKind]string
	limits     map[string]bool
	err        error
	plansErr   error
}

// NewReader returns a Reader. It sends no request.
func NewReader(ctx context.Context, o ReaderOptions) *Reader {
	return &Reader{
		ctx: ctx, ReaderOptions: o, listed: map[schema.GroupKind]bool{}, tried: map[schema.GroupKind]bool{}, gotten: map[schema.GroupKind]int{},
		absent: map[Ref]bool{}, missing: map[Ref]bool{}, asked: map[Ref]bool{}, unreadable: map[schema.GroupKind]string{}, limits: map[string]bool{},
	}
}

// Err returns the error that ended the reading because the API server cannot be used. Commands check it after an
// explanation.
func (r *Reader) Err() error { return r.err }

// PlansErr returns the error of the PlanSource. `slipway explain` prints why there are no plans.
func (r *Reader) PlansErr() error { return r.plansErr }

// Unreadable returns the kinds that could not be read, each with the reason, sorted: "Foo.example.com (no permission)".
func (r *Reader) Unreadable() []string {
	var out []string
	for kind, reason := range r.unreadable {
		out = append(out, fmt.Sprintf("%s (%s)", kind, reason))
	}
	slices.Sort(out)
	return out
}

// Limits returns the limits that were reached, so that the explanation may be incomplete. Commands print them.
func (r *Reader) Limits() []string { return slices.Sorted(maps.Keys(r.limits)) }

// BeginSearch implements [Graph]. The limits of all searches are kept, because all print one explanation.
func (r *Reader) BeginSearch(Ref) {}

// ReachLimit implements [Graph].
func (r *Reader) ReachLimit(_ Ref, limit string) { r.limits[limit] = true }

// coreKinds returns the kinds of Cluster API's core that other objects own.
func coreKinds() []schema.GroupKind {
	var out []schema.GroupKind
	for _, kind := range []string{"MachineDeployment", "MachineHealthCheck", "MachinePool", "MachineSet", "Machine"} {
		out = append(out, schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: kind})
	}
	return out
}

// otherKinds returns kinds that belong to Clusters without an owner reference.
func otherKinds() []schema.GroupKind {
	return []schema.GroupKind{{Group: planev1.GroupVersion.Group, Kind: "EtcdSnapshotPolicy"}, {Group: ipamv1.GroupVersion.Group, Kind: "IPAddressClaim"}}
}

// Roots lists the objects from which a search for everything that is wrong begins. `slipway explain` without an object
// begins with them.
func (r *Reader) Roots() []Ref {
	kinds := []schema.GroupKind{
		{Group: clusterv1.GroupVersion.Group, Kind: clusterv1.ClusterKind}, {Group: clusterv1.GroupVersion.Group, Kind: "ClusterClass"},
		{Group: addonsv1.GroupVersion.Group, Kind: "ClusterResourceSet"}, {Group: runtimev1.GroupVersion.Group, Kind: "ExtensionConfig"},
	}
	var out []Ref
	for _, kind := range slices.Concat(kinds, coreKinds(), otherKinds()) {
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
	if ref.Name == "" || r.absent[ref] || r.err != nil { // an object that belongs to no Cluster has none
		return nil, false
	}
	if r.isListed(ref) || r.unreadable[kind] != "" && r.unreadable[kind] != noPermission {
		return nil, false
	}
	if r.gotten[kind] > 0 && (ref.Namespace == "" || r.covers(ref.Namespace)) {
		r.list(kind)
		if u, found := r.memory.Get(ref); found || r.isListed(ref) {
			return u, found
		}
	}
	r.gotten[kind]++
	if r.gets++; r.gets > maxGets {
		r.ReachLimit(Ref{}, fmt.Sprintf("Only %d objects were read one by one", maxGets))
		return nil, false
	}
	return r.get(ref)
}

// IsMissing implements [Graph]. An object is missing if a request has not found it, or if it is not in a complete list.
func (r *Reader) IsMissing(ref Ref) bool {
	if _, found := r.memory.Get(ref); found || r.err != nil {
		return false
	}
	return r.missing[ref] || r.isListed(ref) && r.unreadable[ref.GroupKind()] == ""
}

// covers reports whether the lists of the Reader include a namespace.
func (r *Reader) covers(namespace string) bool { return r.Namespace == "" || r.Namespace == namespace }

func (r *Reader) isListed(ref Ref) bool {
	return r.listed[ref.GroupKind()] && (ref.Namespace == "" || r.covers(ref.Namespace))
}

func (r *Reader) get(ref Ref) (*unstructured.Unstructured, bool) {
	mapping, ok := r.mapping(ref.GroupKind())
	if !ok {
		r.gets-- // no request is sent
		r.unreadable[ref.GroupKind()] = "not installed"
		return nil, false
	}
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	u, err := r.read(mapping, key)
	if err != nil {
		r.absent[ref], r.missing[ref] = true, apierrors.IsNotFound(err)
		if !apierrors.IsNotFound(err) {
			r.note(ref.GroupKind(), err)
		}
		if apierrors.IsForbidden(err) && r.tried[ref.GroupKind()] && r.covers(ref.Namespace) {
			r.listed[ref.GroupKind()] = true // neither lists nor single objects of the namespace can be read
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
	if r.tried[kind] || r.err != nil || metadataOnly(kind) {
		return
	}
	mapping, ok := r.mapping(kind)
	if !ok {
		return
	}
	r.tried[kind] = true
	next := ""
	for range maxPages {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.Limit(pageSize), client.Continue(next)}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			options = append(options, client.InNamespace(r.Namespace))
		}
		if err := r.Client.List(r.ctx, list, options...); err != nil {
			r.note(kind, err)
			return
		}
		for i := range list.Items {
			r.memory.Add(&list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			r.listed[kind] = true
			return
		}
	}
	r.ReachLimit(Ref{}, fmt.Sprintf("Only %d objects of kind %s were read", pageSize*maxPages, kind.Kind))
}

const noPermission = "no permission"

// note records why a kind cannot be read. Only an API server that cannot be used ends the search.
func (r *Reader) note(kind schema.GroupKind, err error) {
	var transport *url.Error
	switch {
	case apierrors.IsUnauthorized(err), fault.KindOf(err) == fault.Unreachable, r.ctx.Err() != nil, errors.As(err, &transport):
		if r.err == nil {
			r.err = fmt.Errorf("reading %s: %w", kind, err)
		}
	case apierrors.IsForbidden(err):
		r.unreadable[kind] = cmp.Or(r.unreadable[kind], noPermission)
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		r.unreadable[kind] = "not installed"
	default:
		r.unreadable[kind] = redact.Clip(strings.Join(strings.Fields(fault.UserMessage(err)), " "), maxSummary)
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
	for _, gvk := range found[:min(len(found), maxSameName)] {
		ref := Ref{gvk.Group, kind, namespace, name}
		if mapping, ok := r.mapping(gvk.GroupKind()); ok && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			ref.Namespace = ""
		}
		if _, exists := r.Get(ref); exists {
			return ref, true
		}
	}
	if len(found) > maxSameName {
		r.ReachLimit(Ref{}, fmt.Sprintf("Only %d kinds of the same name were looked up", maxSameName))
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
	if of == clusterRef(of.Namespace, of.Name) {
		for _, kind := range otherKinds() {
			r.list(kind)
		}
	}
	return r.memory.Owned(of)
}

// Plans implements [Graph].
func (r *Reader) Plans(of Ref) []Plan {
	if r.ReaderOptions.Plans == nil || r.plansErr != nil {
		return nil
	}
	if r.asked[of] {
		return r.memory.Plans(of)
	}
	if len(r.asked) >= maxPlans {
		r.ReachLimit(Ref{}, fmt.Sprintf("Only the plans of %d objects were read", maxPlans))
		return nil
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
