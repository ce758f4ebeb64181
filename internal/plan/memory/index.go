package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// index finds the objects of a kind by a value, like a field index in the cache of a manager. The controllers that
// `slipway plan` runs add indexes when they are set up.
type index struct {
	field  string
	form   form
	values client.IndexerFunc
	keys   map[string]map[client.ObjectKey]bool
}

// IndexField implements client.FieldIndexer.
func (r *Reader) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(o, r.api.scheme)
	if err != nil {
		return err
	}
	a := r.api
	a.mu.Lock()
	defer a.mu.Unlock()
	i := &index{field: field, form: form{kind: gvk, shape: shapeOf(o)}, values: values, keys: map[string]map[client.ObjectKey]bool{}}
	kind := gvk.GroupKind()
	for _, other := range a.indexes[kind] {
		if other.field == field && other.form.shape == i.form.shape {
			return fmt.Errorf("%s has an index %s already", kind, field)
		}
	}
	a.indexes[kind] = append(a.indexes[kind], i)
	for key, o := range a.objects[kind] {
		i.replace(a, key, nil, o)
	}
	return nil
}

// replace updates the keys of one object. An object that cannot be read in the form of the index has no values.
func (i *index) replace(a *API, key client.ObjectKey, before, after *object) {
	for _, value := range i.of(a, before) {
		delete(i.keys[value], key)
	}
	for _, value := range i.of(a, after) {
		if i.keys[value] == nil {
			i.keys[value] = map[client.ObjectKey]bool{}
		}
		i.keys[value][key] = true
	}
}

// of returns the values of an object in the index.
func (i *index) of(a *API, o *object) []string {
	if o == nil {
		return nil
	}
	typed, err := a.Reader(nil).convert(o, i.form, a.scheme)
	if err != nil {
		return nil
	}
	return i.values(typed)
}

// indexed returns the keys that match all field selectors. The lock must be held. [Reader.List] calls it for field
// selectors.
func (a *API) indexed(kind schema.GroupKind, as shape, o *client.ListOptions) ([]client.ObjectKey, error) {
	var out []client.ObjectKey
	for n, want := range o.FieldSelector.Requirements() {
		at := slices.IndexFunc(a.indexes[kind], func(i *index) bool { return i.field == want.Field && i.form.shape == as })
		if at < 0 {
			if len(a.objects[kind]) == 0 {
				return nil, nil
			}
			return nil, fmt.Errorf("%s has no index %s", kind, want.Field)
		}
		keys := a.indexes[kind][at].keys[want.Value]
		if n == 0 {
			out = slices.SortedFunc(maps.Keys(keys), compareKeys)
			continue
		}
		out = slices.DeleteFunc(out, func(key client.ObjectKey) bool { return !keys[key] })
	}
	return out, nil
}
