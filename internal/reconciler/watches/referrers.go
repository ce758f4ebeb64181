package watches

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/slipwayhq/slipway/internal/kube"
)

// Reference is a reference from an object of the core to a provider object.
type Reference = clusterv1.ContractVersionedObjectReference

// Referrers describes a kind that references provider objects. The Add function of its controller passes it to
// reconciler.Setup.References.
type Referrers struct {
	// New returns an empty object of the kind, NewList an empty list.
	New     func() client.Object
	NewList func() client.ObjectList
	// Refs returns the references that an object holds. If it is nil, a provider object enqueues only its owners
	// and the objects that Also returns.
	Refs func(client.Object) []Reference
	// Also returns objects that a provider object enqueues instead of its owners. If it returns none, the owners
	// are enqueued.
	Also func(ctx context.Context, provider client.Object) []reconcile.Request
}

// References returns a reader for provider objects. It adds a watch to the controller c, called name, for each kind
// that it reads. A change of a provider object enqueues its owner. If the object has no owner yet, the objects that
// reference it by name are enqueued, so that they are reconciled as soon as it appears. The argument filter is the
// manager's watch filter.
func (r Referrers) References(mgr ctrl.Manager, filter, name string, c controller.Controller) (*kube.References, error) {
	kind, err := apiutil.GVKForObject(r.New(), mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	if r.Refs != nil {
		err := mgr.GetFieldIndexer().IndexField(context.Background(), r.New(), ReferenceField(name), ReferenceKeys(r.Refs))
		if err != nil {
			return nil, fmt.Errorf("index %s by reference: %w", kind.Kind, err)
		}
	}
	reader := mgr.GetClient()
	enqueue := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.requests(ctx, reader, referenceIndex{name, kind.GroupKind()}, o)
	})
	return kube.NewReferences(reader, func(u *unstructured.Unstructured) error {
		return c.Watch(source.Kind[client.Object](mgr.GetCache(), u, enqueue))
	}).LimitedTo(filter).WithDiagnostics(mgr.GetRESTMapper(), mgr.GetAPIReader()), nil
}

// referenceIndex identifies a controller's index of the references of its kind.
type referenceIndex struct {
	controller string
	kind       schema.GroupKind
}

// requests returns the requests for a change of a provider object.
func (r Referrers) requests(ctx context.Context, c client.Reader, by referenceIndex, provider client.Object) []reconcile.Request {
	if r.Also != nil {
		if also := r.Also(ctx, provider); len(also) > 0 {
			return also
		}
	}
	if owners := ownersOf(provider, by.kind); len(owners) > 0 || r.Refs == nil {
		return owners
	}
	return Referring(ctx, c, by.controller, r.NewList(), provider)
}

// ReferenceField returns the name of a controller's index of its objects by reference. Tests of controllers with a fake
// client create the index with it and [ReferenceKeys].
func ReferenceField(controller string) string { return controller + ".reference" }

// ReferenceKeys returns an indexer function that computes the keys of an object for that index.
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

// Referring returns requests for the objects that reference a provider object, found through the index of a
// controller. The argument list must be an empty list of their kind.
func Referring(ctx context.Context, c client.Reader, controller string, list client.ObjectList, provider client.Object) []reconcile.Request {
	kind := provider.GetObjectKind().GroupVersionKind()
	by := client.MatchingFields{ReferenceField(controller): referenceKey(kind.Group, kind.Kind, provider.GetName())}
	if err := c.List(ctx, list, client.InNamespace(provider.GetNamespace()), by, client.UnsafeDisableDeepCopy); err != nil {
		return nil
	}
	return Requests(list)
}

// ownersOf returns requests for the owners of an object that are of the given kind.
func ownersOf(o client.Object, kind schema.GroupKind) []reconcile.Request {
	var out []reconcile.Request
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == kind.Kind && groupOf(ref.APIVersion) == kind.Group {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name}})
		}
	}
	return out
}

// Requests returns a request for every object of a list.
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
