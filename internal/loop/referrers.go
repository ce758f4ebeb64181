package loop

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Reference is how an object of the core refers to one of a provider.
type Reference = clusterv1.ContractVersionedObjectReference

// Referrers describes a kind that refers to provider objects.
type Referrers struct {
	// New returns an empty object of the kind, NewList an empty list.
	New     func() client.Object
	NewList func() client.ObjectList
	// Refs returns the references that an object holds. Nil where a provider object wakes nobody but whom Also names, and
	// its owners.
	Refs func(client.Object) []Reference
	// Also, where set, names the objects that a provider object wakes whoever owns it; none: its owners are woken.
	Also func(ctx context.Context, provider client.Object) []reconcile.Request
}

// References returns a reader of provider objects that watches each kind that it reads on behalf of a controller
// (CL-05). A change wakes the owner of the object; one that has no owner yet wakes those that refer to it by name, so that
// nobody waits for a timer until it appears.
func (s Setup) References(name string, c controller.Controller, r Referrers) (*kube.References, error) {
	kind, err := apiutil.GVKForObject(r.New(), s.Manager.GetScheme())
	if err != nil {
		return nil, err
	}
	if r.Refs != nil {
		err := s.Manager.GetFieldIndexer().IndexField(context.Background(), r.New(), ReferenceField(name), ReferenceKeys(r.Refs))
		if err != nil {
			return nil, fmt.Errorf("index %s by reference: %w", kind.Kind, err)
		}
	}
	reader := s.Manager.GetClient()
	wake := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.woken(ctx, reader, name, kind.GroupKind(), o)
	})
	return kube.NewReferences(reader, func(u *unstructured.Unstructured) error {
		return c.Watch(source.Kind[client.Object](s.Manager.GetCache(), u, wake))
	}).LimitedTo(s.WatchFilter).Explaining(s.Manager.GetRESTMapper(), s.Manager.GetAPIReader()), nil
}

// woken are who of the kind has to look at a provider object that changed.
func (r Referrers) woken(ctx context.Context, c client.Reader, name string, kind schema.GroupKind, provider client.Object) []reconcile.Request {
	if r.Also != nil {
		if also := r.Also(ctx, provider); len(also) > 0 {
			return also
		}
	}
	if owners := ownersOf(provider, kind.Group, kind.Kind); len(owners) > 0 || r.Refs == nil {
		return owners
	}
	return Referring(ctx, c, name, r.NewList(), provider)
}

// ReferenceField is the name of a controller's index of its objects by what they refer to.
func ReferenceField(controller string) string { return controller + ".reference" }

// ReferenceKeys returns what the index has of an object that holds references.
func ReferenceKeys(refs func(client.Object) []Reference) client.IndexerFunc {
	return func(o client.Object) []string {
		var keys []string
		for _, ref := range refs(o) {
			if ref.IsDefined() {
				keys = append(keys, referenceKey(ref.APIGroup, ref.Kind, ref.Name))
			}
		}
		return keys
	}
}

func referenceKey(group, kind, name string) string { return group + "/" + kind + "/" + name }

// Referring names the objects that refer to a provider object, by the index of a controller; list is an empty one of
// their kind.
func Referring(ctx context.Context, c client.Reader, controller string, list client.ObjectList, provider client.Object) []reconcile.Request {
	kind := provider.GetObjectKind().GroupVersionKind()
	by := client.MatchingFields{ReferenceField(controller): referenceKey(kind.Group, kind.Kind, provider.GetName())}
	if err := c.List(ctx, list, client.InNamespace(provider.GetNamespace()), by, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return Requests(list)
}

func ownersOf(o client.Object, ownerGroup, ownerKind string) []reconcile.Request {
	var out []reconcile.Request
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == ownerKind && group(ref.APIVersion) == ownerGroup {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}})
		}
	}
	return out
}

// Requests are for every object of a list.
func Requests(list client.ObjectList) []reconcile.Request {
	items, err := apimeta.ExtractList(list)
	if err != nil {
		return nil
	}
	var out []reconcile.Request
	for _, item := range items {
		if o, ok := item.(client.Object); ok {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		}
	}
	return out
}
