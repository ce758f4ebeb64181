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
	"github.com/slipwayhq/slipway/sdk/contract"
)

// CRDKind is the kind that References reads to determine contract versions; only its metadata is cached. The
// ClusterClass controller, webhooks, `slipway plan` and `slipway move` read this kind, too.
func CRDKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

// reasonNotInstalled is the reason of the fault for a kind without a CRD.
const reasonNotInstalled = "KindNotInstalled"

// References reads provider objects by reference: it determines the API version from the contract labels of the CRD,
// and watches each kind that it reads. Each controller whose kind references provider objects has one, and so do the
// webhooks.
type References struct {
	reader client.Reader
	watch  func(*unstructured.Unstructured) error
	// index, if set, creates an index of a kind by the label that List selects by.
	index        func(*unstructured.Unstructured) error
	field, label string
	// mapper and live, if set, are used to determine why a kind cannot be read.
	mapper apimeta.RESTMapper
	live   client.Reader
	// filter, if set, is the value of the watch label to which the manager is restricted.
	filter string

	mu                       sync.Mutex
	watched, indexed, synced map[schema.GroupVersionKind]bool
	refusals                 map[schema.GroupVersionKind]readProblem
}

// NewReferences returns a reader of references. watch is called once for each version of a kind that is read, with an
// empty object of that kind; it may be nil.
func NewReferences(reader client.Reader, watch func(*unstructured.Unstructured) error) *References {
	return &References{
		reader: reader, watch: watch, refusals: map[schema.GroupVersionKind]readProblem{},
		watched: map[schema.GroupVersionKind]bool{}, indexed: map[schema.GroupVersionKind]bool{}, synced: map[schema.GroupVersionKind]bool{},
	}
}

// LimitedTo rejects objects that have the watch label of a manager with another watch filter. Objects without the label
// are accepted, because they are used through the referring object. Package watches and the controllers that clone
// templates call it once, at their creation.
func (r *References) LimitedTo(filter string) *References {
	r.filter = filter
	return r
}

// IndexedBy makes List use an index by a label, instead of reading all objects of the kind. name must be unique for
// each controller, because the same index cannot be created twice. The MachineSet, MachinePool, KubeadmControlPlane and
// topology controllers call it once, at their creation.
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

// Get returns the object that ref references in the namespace, in the API version that implements the newest contract.
// If the object does not exist, it returns a nil Unstructured and no error. Objects from a cache are not copied and
// must not be changed.
func (r *References) Get(ctx context.Context, ref clusterv1.ContractVersionedObjectReference, namespace string) (contract.Object, error) {
	return r.GetAs(ctx, "", ref, namespace)
}

// GetAs is like Get, for a given API version of the kind, which must implement some contract; empty for the version of
// the newest contract. The ClusterClass controller reads templates with it.
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

// GetReferenced returns the object that from references. If it cannot be read, the result has a Problem with the
// correction that a user has to make. An undefined reference returns an empty result. So does a reference of an object
// that is being deleted to an object that cannot exist, because its kind is not installed (any more) or no object of
// that name exists. An object that the manager is not allowed to read is assumed to exist. Controllers call it in each
// observation for the objects to which their object refers.
func (r *References) GetReferenced(ctx context.Context, from client.Object, ref clusterv1.ContractVersionedObjectReference) (contract.Object, error) {
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

// mayExist reports whether an object may exist although it could not be read for this reason.
func (r *References) mayExist(ctx context.Context, reason, namespace string, ref clusterv1.ContractVersionedObjectReference) (bool, error) {
	switch reason {
	case reasonNotInstalled, reasonNoSuchKind:
		return false, nil
	case reasonNotServed, reasonWrongName:
		return r.exists(ctx, schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}, client.ObjectKey{Namespace: namespace, Name: ref.Name})
	}
	return true, nil
}

// List returns the objects of a provider kind in the namespace that match the labels. Objects from a cache are not
// copied and must not be changed.
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

// kind returns an empty object of the referenced kind in an API version, or in the version that implements the newest
// contract, and ensures that the kind is watched.
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

// servedAs returns the name of the CRD that serves a kind, or an empty string if the kind is not served or this is
// unknown.
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

// pluralOf returns the plural from the name of a CRD.
func pluralOf(crd string) string {
	plural, _, _ := strings.Cut(crd, ".")
	return plural
}

// setLastServed sets the newest served version among the versions in the contract label of the CRD, and reports whether
// there is one.
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

// remedy returns a suggestion for a missing CRD, for example a similar one or one in another group.
func (r *References) remedy(ctx context.Context, name string) string {
	plural := pluralOf(name)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(CRDKind())
	if err := r.reader.List(ctx, list, client.UnsafeDisableDeepCopy); err == nil {
		other, similar := "", ""
		for i := range list.Items { // the list is unordered, so select the first by name
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
	return fmt.Sprintf("install the provider it belongs to (CRD %s)", name) + QuickstartAlternative(plural, group)
}

// kindOf returns the kind of a CRD, or a description with the CRD name if the kind is unknown.
func (r *References) kindOf(crd string) string {
	plural, group, _ := strings.Cut(crd, ".")
	if r.mapper != nil {
		if kind, err := r.mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural}); err == nil {
			return kind.Kind
		}
	}
	return "the kind of CRD " + crd
}

// isSimilar reports whether one CRD name is probably a misspelling of the other in the same group.
func isSimilar(a, b string) bool {
	const (
		shortest = 6 // short words are similar to many others
		most     = 2
	)
	one, group, _ := strings.Cut(a, ".")
	two, other, _ := strings.Cut(b, ".")
	return group == other && min(len(one), len(two)) >= shortest && distance(one, two) <= most
}

// distance returns the edit distance between two words.
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

// once calls do once for each version of a kind, because each version has its own cache. A nil do is not called.
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
