package mirror

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipwayhq/slipway/internal/rootcause"
)

// Reader reads copied kinds from the Store, and other kinds from the API. Package describe reads the tree of the
// cluster page with it.
type Reader struct {
	store  *Store
	scheme *runtime.Scheme
	// live reads kinds that are not copied.
	live   client.Reader
	mapper func() meta.RESTMapper
	copied func(schema.GroupKind) bool
}

var _ client.Reader = &Reader{}

// RESTMapper returns the kinds of the API server.
func (r *Reader) RESTMapper() meta.RESTMapper { return r.mapper() }

// checkServed returns an error if the API server does not serve the kind. The client would discover all kinds each time.
func (r *Reader) checkServed(kind schema.GroupKind) error {
	_, err := r.mapper().RESTMapping(kind)
	return err
}

// Get implements client.Reader.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, out client.Object, options ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, r.scheme)
	if err != nil {
		return err
	}
	if !r.copied(gvk.GroupKind()) {
		if err := r.checkServed(gvk.GroupKind()); err != nil {
			return err
		}
		return r.live.Get(ctx, key, out, options...)
	}
	found, ok := r.store.Get(rootcause.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: key.Namespace, Name: key.Name})
	if !ok {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		return apierrors.NewNotFound(resource.GroupResource(), key.Name)
	}
	return convert(found.Object, out)
}

// List implements client.Reader.
func (r *Reader) List(ctx context.Context, out client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(out, r.scheme)
	if err != nil {
		return err
	}
	kind := schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind[:max(0, len(gvk.Kind)-len("List"))]}
	if !r.copied(kind) {
		if err := r.checkServed(kind); err != nil {
			return err
		}
		return r.live.List(ctx, out, options...)
	}
	var o client.ListOptions
	o.ApplyOptions(options)
	items := []any{}
	for _, u := range r.store.Objects(kind, o.Namespace) {
		if matches(u, o.LabelSelector, o.FieldSelector) {
			items = append(items, u.Object)
		}
	}
	return convert(map[string]any{"items": items}, out)
}

// matches reports whether an object has the labels, and the name if the field selector requires one. Other fields are not
// supported and match no object.
func matches(u *unstructured.Unstructured, label labels.Selector, field fields.Selector) bool {
	if label != nil && !label.Matches(labels.Set(u.GetLabels())) {
		return false
	}
	return field == nil || field.Matches(fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()})
}

// convert converts stored content to any type of object or list.
func convert(content map[string]any, out runtime.Object) error {
	switch out := out.(type) {
	case *unstructured.Unstructured:
		out.Object = runtime.DeepCopyJSON(content)
		return nil
	case *unstructured.UnstructuredList:
		for _, item := range content["items"].([]any) {
			out.Items = append(out.Items, unstructured.Unstructured{Object: item.(map[string]any)})
		}
		return nil
	case *metav1.PartialObjectMetadataList:
		return convertMetadata(content["items"].([]any), out)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, out); err != nil {
		return fmt.Errorf("converting to %T: %w", out, err)
	}
	return nil
}

func convertMetadata(items []any, out *metav1.PartialObjectMetadataList) error {
	for _, item := range items {
		var m metav1.PartialObjectMetadata
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.(map[string]any), &m); err != nil {
			return fmt.Errorf("converting metadata: %w", err)
		}
		out.Items = append(out.Items, m)
	}
	return nil
}
