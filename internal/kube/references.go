package kube

import (
	"context"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube/quickstart"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// CRDKind is what References reads to find contract versions; its metadata alone is cached.
func CRDKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

// reasonNotInstalled is the reason of the fault for a kind without a CRD.
const reasonNotInstalled = "KindNotInstalled"

// References reads provider objects by the references that the core's objects hold.
type References struct {
	reader client.Reader
	watch  func(*unstructured.Unstructured) error
	// index, where set, makes the index of a kind by the label of those that List returns.
	index        func(*unstructured.Unstructured) error
	field, label string
	// mapper and live, where set, explain why a kind cannot be read.
	mapper apimeta.RESTMapper
	live   client.Reader
	// filter, where set, is the value of the watch label that the manager limits itself to.
	filter string

	mu                       sync.Mutex
	watched, indexed, synced map[schema.GroupVersionKind]bool
	refusals                 map[schema.GroupVersionKind]unreadable
}

// NewReferences returns a reader of references. watch is called once for each version of a kind that is read
// , with an empty object of that kind; it may be nil.
func NewReferences(reader client.Reader, watch func(*unstructured.Unstructured) error) *References {
	return &References{
		reader: reader, watch: watch, refusals: map[schema.GroupVersionKind]unreadable{},
		watched: map[schema.GroupVersionKind]bool{}, indexed: map[schema.GroupVersionKind]bool{}, synced: map[schema.GroupVersionKind]bool{},
	}
}

// LimitedTo refuses objects whose label is that of a manager with another watch filter. Those without the label are
// read: they belong to who refers to them.
func (r *References) LimitedTo(filter string) *References {
	r.filter = filter
	return r
}

// IndexedBy lets List find those that have the label without reading all others of their kind. name is of the controller:
// the same index must not be created twice.
func (r *References) IndexedBy(indexer client.FieldIndexer, name, label string) *References {
	r.field, r.label = name+"."+label, label
	r.index = func(u *unstructured.Unstructured) error {
		return indexer.IndexField(context.Background(), u, r.field, func(o client.Object) []string {
			if value := o.GetLabels()[label]; value != "" {
				return []string{value}
			}
			return nil
		})
	}
	return r
}

// Get returns the object that ref points to in the namespace, read in the API version that fulfils the
// newest contract. An object that does not exist is a nil Unstructured and no error. What comes from a
// cache is not copied, and must not be changed.
func (r *References) Get(ctx context.Context, ref clusterv1.ContractVersionedObjectReference, namespace string) (contract.Object, error) {
	return r.GetAs(ctx, "", ref, namespace)
}

// GetAs is Get in an API version of the kind that has to fulfil some contract; empty: that of the newest.
func (r *References) GetAs(ctx context.Context, apiVersion string, ref clusterv1.ContractVersionedObjectReference, namespace string) (contract.Object, error) {
	version, u, err := r.kind(ctx, ref, apiVersion)
	if err != nil {
		return contract.Object{}, err
	}
	err = r.read(ctx, u, namespace, func(ctx context.Context) error {
		return r.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, u, client.UnsafeDisableDeepCopy)
	})
	if apierrors.IsNotFound(err) {
		return contract.Object{Contract: version}, nil
	}
	if err != nil {
		return contract.Object{}, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	if theirs := u.GetLabels()[clusterv1.WatchLabel]; r.filter != "" && theirs != "" && theirs != r.filter {
		return contract.Object{}, fault.New(fault.Invalid, "OfAnotherManager",
			"%s %s has the label %s=%s, so it is not of this manager (%s); correct the label, or refer to another object",
			ref.Kind, ref.Name, clusterv1.WatchLabel, theirs, r.filter)
	}
	return contract.Object{Unstructured: u, Contract: version}, nil
}

// Follow returns the object that an object of ours refers to. One that cannot be read is not there and has a Problem, which says
// what a person has to change. A reference that is not set points to nothing, and so does one by an object that is being deleted
// to what cannot exist: its kind is not installed (any more), or there never was one of that name. What the manager may not read
// does exist, for all it knows.
func (r *References) Follow(ctx context.Context, from client.Object, ref clusterv1.ContractVersionedObjectReference) (contract.Object, error) {
	if !ref.IsDefined() {
		return contract.Object{}, nil
	}
	o, err := r.Get(ctx, ref, from.GetNamespace())
	f := fault.As(err)
	if f == nil || f.Kind != fault.Invalid {
		return o, err
	}
	if !from.GetDeletionTimestamp().IsZero() {
		if left, err := r.mayExist(ctx, f.Reason, from.GetNamespace(), ref); err != nil || !left {
			return contract.Object{}, err
		}
	}
	return contract.Object{Problem: f.Message}, nil
}

// mayExist reports whether an object may be there although it could not be read for this reason.
func (r *References) mayExist(ctx context.Context, reason, namespace string, ref clusterv1.ContractVersionedObjectReference) (bool, error) {
	switch reason {
	case reasonNotInstalled, reasonNoSuchKind:
		return false, nil
	case reasonNotServed, reasonWrongName:
		return r.exists(ctx, schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, client.ObjectKey{Namespace: namespace, Name: ref.Name})
	}
	return true, nil
}

// List returns the objects of a provider's kind in the namespace that match the labels. What comes from a cache is not
// copied, and must not be changed.
func (r *References) List(ctx context.Context, group, kind, namespace string, labels map[string]string) ([]contract.Object, error) {
	version, u, err := r.kind(ctx, clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: kind}, "")
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	gvk := u.GroupVersionKind()
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	opts := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels(labels), client.UnsafeDisableDeepCopy}
	if value := labels[r.label]; value != "" && r.index != nil {
		if err := r.once(r.indexed, u, r.index, "indexing"); err != nil {
			return nil, err
		}
		opts = append(opts, client.MatchingFields{r.field: value})
	}
	err = r.read(ctx, u, namespace, func(ctx context.Context) error { return r.reader.List(ctx, list, opts...) })
	if err != nil {
		return nil, fmt.Errorf("listing %s in %s: %w", kind, namespace, err)
	}
	out := make([]contract.Object, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, contract.Object{Unstructured: &list.Items[i], Contract: version})
	}
	return out, nil
}

// kind returns an empty object of the referenced kind in an API version, or in the one that fulfils the newest contract, and makes
// sure that the kind is watched.
func (r *References) kind(
	ctx context.Context, ref clusterv1.ContractVersionedObjectReference, wanted string,
) (contract.Version, *unstructured.Unstructured, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(CRDKind())
	name := contract.CRDNameOf(ref)
	if err := r.reader.Get(ctx, client.ObjectKey{Name: name}, crd, client.UnsafeDisableDeepCopy); err != nil {
		if apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
			if have := r.servedAs(ref); have != "" && have != name {
				return "", nil, fault.New(fault.Invalid, reasonWrongName, "kind %s of group %s is installed by CRD %s, which must be named %s "+
					"to be found: its provider has to set spec.names.plural to %s", ref.Kind, ref.APIGroup, have, name, pluralOf(name)).From(err)
			}
			return "", nil, fault.New(fault.Invalid, reasonNotInstalled,
				"kind %s of group %s is not installed; %s", ref.Kind, ref.APIGroup, r.remedy(ctx, name)).From(err)
		}
		return "", nil, fmt.Errorf("reading CRD %s: %w", name, err)
	}
	version, apiVersion, err := contract.Resolve(name, crd.Labels)
	if err == nil && wanted != "" {
		version, err = contract.FulfilledBy(name, crd.Labels, wanted)
		apiVersion = wanted
	}
	if err != nil {
		return "", nil, fault.New(fault.Invalid, "NoContract", "%s", err.Error())
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.APIGroup, Version: apiVersion, Kind: ref.Kind})
	if err = r.served(name, version, u.GroupVersionKind()); hasReason(err, reasonNotServed) && wanted == "" {
		if r.setLastServed(name, version, crd.Labels, u) {
			err = nil
		}
	}
	if err != nil {
		return "", nil, err
	}
	return version, u, r.once(r.watched, u, r.watch, "watching")
}

// servedAs returns the name of the CRD by which the API server serves a kind; empty: it does not, or that is not known.
func (r *References) servedAs(ref clusterv1.ContractVersionedObjectReference) string {
	if r.mapper == nil {
		return ""
	}
	mapping, err := r.mapper.RESTMapping(schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind})
	if err != nil {
		return ""
	}
	return mapping.Resource.Resource + "." + mapping.Resource.Group
}

// pluralOf is the plural in the name of a CRD.
func pluralOf(crd string) string {
	plural, _, _ := strings.Cut(crd, ".")
	return plural
}

// setLastServed sets the newest served version of those that a label of the CRD names, and reports whether there is one.
func (r *References) setLastServed(crd string, contractVersion contract.Version, labels map[string]string, u *unstructured.Unstructured) bool {
	kind := u.GroupVersionKind()
	for _, v := range contract.Fulfilling(labels, contractVersion)[1:] {
		kind.Version = v
		if r.served(crd, contractVersion, kind) == nil {
			u.SetGroupVersionKind(kind)
			return true
		}
	}
	return false
}

func hasReason(err error, reason string) bool {
	f := fault.As(err)
	return f != nil && f.Reason == reason
}

// remedy says what to do about a CRD that is not there: there may be one of the same name in another group.
func (r *References) remedy(ctx context.Context, name string) string {
	plural := pluralOf(name)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(CRDKind())
	if err := r.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err == nil {
		other, similar := "", ""
		for i := range list.Items { // in no order: the first by name is always the same one
			if group, is := strings.CutPrefix(list.Items[i].Name, plural+"."); is && (other == "" || group < other) {
				other = group
			}
			if crd := list.Items[i].Name; isSimilar(crd, name) && (similar == "" || crd < similar) {
				similar = crd
			}
		}
		if similar != "" {
			return fmt.Sprintf("did you mean %s? If not, install the provider it belongs to (CRD %s)", r.kindOf(similar), name)
		}
		if other != "" {
			return fmt.Sprintf("there is one of group %s: refer to that, or install the provider it belongs to (CRD %s)", other, name)
		}
	}
	_, group, _ := strings.Cut(name, ".")
	return fmt.Sprintf("install the provider it belongs to (CRD %s)", name) + quickstart.Instead(plural, group)
}

// kindOf names the kind of a CRD, by the CRD where the kind is not known.
func (r *References) kindOf(crd string) string {
	plural, group, _ := strings.Cut(crd, ".")
	if r.mapper != nil {
		if kind, err := r.mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural}); err == nil {
			return kind.Kind
		}
	}
	return "the kind of CRD " + crd
}

// isSimilar reports whether two CRDs of one group have names that differ like a word and its misspelling.
func isSimilar(a, b string) bool {
	const (
		shortest = 6 // short words are similar to many others
		most     = 2
	)
	one, group, _ := strings.Cut(a, ".")
	two, other, _ := strings.Cut(b, ".")
	return group == other && min(len(one), len(two)) >= shortest && distance(one, two) <= most
}

// distance is the number of letters to insert, delete or replace to get from one word to another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// once calls do one time for each version of a kind: another version is read from a cache of its own. A nil do is not called.
func (r *References) once(done map[schema.GroupVersionKind]bool, u *unstructured.Unstructured, do func(*unstructured.Unstructured) error, what string) error {
	if do == nil {
		return nil
	}
	kind := u.GroupVersionKind()
	r.mu.Lock()
	defer r.mu.Unlock()
	if done[kind] {
		return nil
	}
	if err := do(u.DeepCopy()); err != nil {
		return fmt.Errorf("%s %s: %w", what, kind.GroupKind(), err)
	}
	done[kind] = true
	return nil
}
