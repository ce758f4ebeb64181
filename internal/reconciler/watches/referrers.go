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
	if err := r.Index(mgr.GetFieldIndexer(), name); err != nil {
		return nil, err
	}
	reader := mgr.GetClient()
	enqueue := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.Requests(ctx, reader, name, o)
	})
	return kube.NewReferences(reader, func(u *unstructured.Unstructured) error {
		return c.Watch(source.Kind[client.Object](mgr.GetCache(), u, enqueue))
	}).LimitedTo(filter).WithDiagnostics(mgr.GetRESTMapper(), mgr.GetAPIReader()), nil
}

// Index adds the index of the objects by reference with which a controller finds the referrers of a provider object.
func (r Referrers) Index(indexer client.FieldIndexer, controller string) error {
	if r.Refs == nil {
		return nil
	}
	if err := indexer.IndexField(context.Background(), r.New(), referenceField(controller), referenceKeys(r.Refs)); err != nil {
		return fmt.Errorf("index %T by reference: %w", r.New(), err)
	}
	return nil
}

// Requests returns the requests of a controller for a change of a provider object.
func (r Referrers) Requests(ctx context.Context, c client.Client, controller string, provider client.Object) []reconcile.Request {
	if r.Also != nil {
		if also := r.Also(ctx, provider); len(also) > 0 {
			return also
		}
	}
	kind, err := c.GroupVersionKindFor(r.New())
	if err != nil {
		return nil
	}
	if owners := ownersOf(provider, kind.GroupKind()); len(owners) > 0 || r.Refs == nil {
		return owners
	}
	return r.referring(ctx, c, controller, provider)
}

// referenceField returns the name of a controller's index of its objects by reference.
func referenceField(controller string) string { return controller + ".reference" }

// referenceKeys returns an indexer function that computes the keys of an object for that index.
func referenceKeys(refs func(client.Object) []Reference) client.IndexerFunc {
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

// referring returns requests for the objects that reference a provider object, found through the index of a
// controller.
func (r Referrers) referring(ctx context.Context, c client.Reader, controller string, provider client.Object) []reconcile.Request {
	list := r.NewList()
	kind := provider.GetObjectKind().GroupVersionKind()
	by := client.MatchingFields{referenceField(controller): referenceKey(kind.Group, kind.Kind, provider.GetName())}
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
