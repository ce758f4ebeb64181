package memory

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// form is a representation of an object: the version and Go type in which a client reads it.
type form struct {
	// kind is the version to read, and shape the Go representation.
	kind  schema.GroupVersionKind
	shape shape
	// transformed is true if the object is transformed as in the cache of a manager.
	transformed bool
}

// shape is the kind of Go value that an object is read into.
type shape int

const (
	asContent shape = iota
	asType
	asMetadata
)

func shapeOf(o any) shape {
	switch o.(type) {
	case runtime.Unstructured:
		return asContent
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return asMetadata
	}
	return asType
}

// Reader reads the API, for controllers and their caches in the simulation of `slipway plan`. It implements
// client.Reader.
type Reader struct {
	api *API
	// transform is the cache transformation; nil: none, as without a cache.
	transform toolscache.TransformFunc
}

// Reader returns a reader whose objects are transformed as in a cache; nil: not transformed. Package world creates
// readers for the cache of the controllers, and for the API reader without a cache.
func (a *API) Reader(transform toolscache.TransformFunc) *Reader {
	return &Reader{api: a, transform: transform}
}

// convert returns an object in a form. The result must not be modified.
func (r *Reader) convert(o *object, f form, scheme *runtime.Scheme) (client.Object, error) {
	f.transformed = r.transform != nil
	o.mu.Lock()
	defer o.mu.Unlock()
	if found := o.forms[f]; found != nil {
		return found, nil
	}
	out, err := shaped(o.content, f, scheme)
	if err != nil {
		return nil, err
	}
	if r.transform != nil {
		if out == client.Object(o.content) {
			out = o.content.DeepCopy()
		}
		changed, err := r.transform(out)
		if err != nil {
			return nil, err
		}
		out = changed.(client.Object)
	}
	if o.forms == nil {
		o.forms = map[form]client.Object{}
	}
	o.forms[f] = out
	return out, nil
}

// shaped converts an object to a form.
func shaped(u *unstructured.Unstructured, f form, scheme *runtime.Scheme) (client.Object, error) {
	switch f.shape {
	case asMetadata:
		out := &metav1.PartialObjectMetadata{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": u.Object["metadata"]}, out); err != nil {
			return nil, err
		}
		out.SetGroupVersionKind(f.kind)
		return out, nil
	case asType:
		o, err := scheme.New(f.kind)
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", f.kind.Kind, client.ObjectKeyFromObject(u), err)
		}
		return o.(client.Object), nil
	}
	if u.GroupVersionKind() == f.kind {
		return u, nil
	}
	u = u.DeepCopy()
	u.SetGroupVersionKind(f.kind)
	return u, nil
}

// Get implements client.Reader.
func (r *Reader) Get(_ context.Context, key client.ObjectKey, out client.Object, opts ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, r.api.scheme)
	if err != nil {
		return err
	}
	found, err := r.find(gvk, key)
	if err != nil {
		return err
	}
	o, err := r.convert(found, form{kind: gvk, shape: shapeOf(out)}, r.api.scheme)
	if err != nil {
		return err
	}
	options := (&client.GetOptions{}).ApplyOptions(opts)
	return into(o, out, options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy)
}

func (r *Reader) find(gvk schema.GroupVersionKind, key client.ObjectKey) (*object, error) {
	r.api.mu.Lock()
	defer r.api.mu.Unlock()
	k, err := r.api.kindOf(gvk)
	if err != nil {
		return nil, err
	}
	found := r.api.objects[k.gvk.GroupKind()][key]
	if found == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return found, nil
}

// into copies a read object into another one of the same type.
func into(o, out client.Object, shared bool) error {
	if !shared {
		o = o.DeepCopyObject().(client.Object)
	}
	from, to := reflect.ValueOf(o), reflect.ValueOf(out)
	if !from.Type().AssignableTo(to.Type()) {
		return fmt.Errorf("read %s, but %s was requested", from.Type(), to.Type())
	}
	to.Elem().Set(from.Elem())
	return nil
}

// List implements client.Reader.
func (r *Reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, r.api.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	options := (&client.ListOptions{}).ApplyOptions(opts)
	found, err := r.api.selected(gvk, shapeOf(list), options)
	if err != nil {
		return err
	}
	shared := options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy
	items := make([]runtime.Object, 0, len(found))
	for _, one := range found {
		if options.Limit > 0 && int64(len(items)) >= options.Limit {
			break
		}
		o, err := r.convert(one, form{kind: gvk, shape: shapeOf(list)}, r.api.scheme)
		if err != nil {
			return err
		}
		if !shared {
			o = o.DeepCopyObject().(client.Object)
		}
		items = append(items, o)
	}
	return meta.SetList(list, items)
}

// selected returns the objects of a kind that match the options, in order.
func (a *API) selected(gvk schema.GroupVersionKind, as shape, o *client.ListOptions) ([]*object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k, err := a.kindOf(gvk)
	if err != nil {
		return nil, err
	}
	kind := k.gvk.GroupKind()
	var keys []client.ObjectKey
	if o.FieldSelector != nil && !o.FieldSelector.Empty() {
		if keys, err = a.indexed(kind, as, o); err != nil {
			return nil, err
		}
	} else {
		keys = a.keys(kind)
	}
	var out []*object
	for _, key := range keys {
		found := a.objects[kind][key]
		if o.Namespace != "" && key.Namespace != o.Namespace || o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(found.content.GetLabels())) {
			continue
		}
		out = append(out, found)
	}
	return out, nil
}

// BeforeAndAfter returns the objects before and after a write in the form of the example, or nil if one does not exist,
// for the event handlers of controllers. They must not be modified.
func (r *Reader) BeforeAndAfter(e Event, gvk schema.GroupVersionKind, example client.Object) (before, after client.Object, err error) {
	f := form{kind: gvk, shape: shapeOf(example)}
	if e.old != nil {
		if before, err = r.convert(e.old, f, r.api.scheme); err != nil {
			return nil, nil, err
		}
	}
	if e.new != nil {
		after, err = r.convert(e.new, f, r.api.scheme)
	}
	return before, after, err
}

// Every returns all objects of a kind in the form of the example, in order, for the initial list of an informer. They
// must not be modified. Package world calls it.
func (r *Reader) Every(gvk schema.GroupVersionKind, example client.Object) ([]client.Object, error) {
	found, err := r.api.selected(gvk, shapeOf(example), &client.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := make([]client.Object, 0, len(found))
	for _, one := range found {
		o, err := r.convert(one, form{kind: gvk, shape: shapeOf(example)}, r.api.scheme)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}
