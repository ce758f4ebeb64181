package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// write is a write request to the in-memory API of `slipway plan`. Controllers send it through a [Client], and
// simulated components through [API.WriteAsSystem] and [API.Remove].
type write struct {
	kind *kind
	key  client.ObjectKey
	// fieldManager is the field manager, and subresource the written subresource.
	fieldManager, subresource string
	dryRun                    bool
	// force takes ownership of conflicting fields.
	force bool
	// applied is true if the managed fields are already computed.
	applied bool
	// bySystem is true for writes of simulated components, which skip admission and field tracking.
	bySystem bool
}

func (w write) resource() schema.GroupResource {
	return schema.GroupResource{Group: w.kind.gvk.Group, Resource: w.kind.gvk.Kind}
}

func (a *API) time() metav1.Time { return metav1.NewTime(a.now().UTC().Truncate(1e9)) }

// create stores a new object. The lock must be held. [Client] calls it for creates, and for applies of objects that do
// not exist.
func (a *API) create(ctx context.Context, w write, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if next.GetName() == "" && next.GetGenerateName() != "" {
		a.names++
		next.SetName(next.GetGenerateName() + rand.SafeEncodeString(fmt.Sprintf("%05d", a.names)))
		w.key.Name = next.GetName()
	}
	if a.objects[w.kind.gvk.GroupKind()][w.key] != nil {
		return nil, apierrors.NewAlreadyExists(w.resource(), w.key.Name)
	}
	return a.put(ctx, w, nil, next)
}

// put stores an object in place of the old one, which is nil for a create, and returns the stored object. Every create
// and update calls it, but a deletion does not. The order of the steps is the order in the API server. The lock must be
// held, but admission releases it for a time (callAdmission), so callers must not rely on what they read before.
func (a *API) put(ctx context.Context, w write, old *object, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	before := empty(w.kind.gvk)
	if old != nil {
		before = old.content
	}
	next.SetGroupVersionKind(w.kind.gvk)
	w.revertUnwritable(before, next)
	if err := w.kind.complete(next.Object); err != nil {
		return nil, err
	}
	a.keepIdentity(w, before, next, old == nil)
	next, err := a.admit(ctx, w, old, next)
	if err != nil {
		return nil, err
	}
	if !w.applied && !w.bySystem {
		manager, err := w.kind.manager(w.subresource)
		if err != nil {
			return nil, err
		}
		tracked, err := manager.Update(before, next, w.fieldManager)
		if err != nil {
			return nil, err
		}
		next = tracked.(*unstructured.Unstructured)
	}
	if old != nil && isSame(before, next) {
		return before, nil
	}
	if old != nil && specChanged(before, next) {
		next.SetGeneration(before.GetGeneration() + 1)
	}
	if w.dryRun {
		return next, nil
	}
	return a.store(w, old, next), nil
}

// revertUnwritable reverts the parts of the new content that the request may not write.
func (w write) revertUnwritable(before, next *unstructured.Unstructured) {
	if !w.kind.hasStatus || w.bySystem {
		return
	}
	if w.subresource == "" {
		if status, ok := before.Object[statusSubresource]; ok {
			next.Object[statusSubresource] = status
		} else {
			delete(next.Object, statusSubresource)
		}
		return
	}
	status, managed := next.Object[statusSubresource], next.GetManagedFields()
	for name := range next.Object {
		delete(next.Object, name)
	}
	maps.Copy(next.Object, before.DeepCopy().Object)
	delete(next.Object, statusSubresource)
	if status != nil {
		next.Object[statusSubresource] = status
	}
	next.SetManagedFields(managed)
}

// keepIdentity sets the metadata that clients cannot write.
func (a *API) keepIdentity(w write, before, next *unstructured.Unstructured, created bool) {
	if created {
		next.SetUID(a.newUID(w.kind, w.key))
		next.SetCreationTimestamp(a.time())
		next.SetGeneration(1)
		next.SetDeletionTimestamp(nil)
		next.SetResourceVersion("")
		return
	}
	next.SetUID(before.GetUID())
	next.SetCreationTimestamp(before.GetCreationTimestamp())
	next.SetGeneration(before.GetGeneration())
	next.SetDeletionTimestamp(before.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	next.SetResourceVersion(before.GetResourceVersion())
}

// admit defaults and validates the object. Status writes skip admission: controllers report the status, and its readers
// validate it.
func (a *API) admit(ctx context.Context, w write, old *object, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if w.subresource != "" || w.bySystem || w.kind.crd == nil {
		return next, nil
	}
	var content map[string]any
	var before client.Object
	if old != nil {
		content = old.content.Object
		if !specChanged(old.content, next) && sameMetadata(old.content, next) {
			return next, nil
		}
	}
	if a.admission != nil && a.scheme.Recognizes(w.kind.gvk) {
		wanted, err := a.typed(next)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if old != nil {
			if before, err = a.typed(old.content); err != nil {
				return nil, err
			}
		}
		admitted, err := a.callAdmission(ctx, admissionInput{w, old, before}, wanted)
		if err != nil {
			return nil, err
		}
		if admitted != wanted {
			if next, err = a.defaulted(next, wanted, admitted); err != nil {
				return nil, err
			}
		}
	}
	if errs := w.kind.validate(ctx, next.Object, content); len(errs) > 0 {
		return nil, apierrors.NewInvalid(w.kind.gvk.GroupKind(), next.GetName(), errs)
	}
	return next, nil
}

// admissionInput is a write with the stored object in both forms. The typed form is nil for a create.
type admissionInput struct {
	write  write
	old    *object
	before client.Object
}

// callAdmission calls admission without holding the lock, because admission reads other objects. A concurrent write
// causes a conflict.
func (a *API) callAdmission(ctx context.Context, on admissionInput, wanted client.Object) (client.Object, error) {
	w, old := on.write, on.old
	wanted.GetObjectKind().SetGroupVersionKind(w.kind.gvk)
	a.mu.Unlock()
	admitted, err := a.admission.Admit(ctx, on.before, wanted, w.dryRun)
	a.mu.Lock()
	if err == nil && a.objects[w.kind.gvk.GroupKind()][w.key] != old {
		err = apierrors.NewConflict(w.resource(), w.key.Name, errors.New("the object was changed meanwhile"))
	}
	return admitted, err
}

// typed converts an object to its Go type.
func (a *API) typed(u *unstructured.Unstructured) (client.Object, error) {
	o, err := a.scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		return nil, err
	}
	return o.(client.Object), nil
}

// defaulted applies the changes that admission made to the typed object to the unstructured one.
func (a *API) defaulted(u *unstructured.Unstructured, wanted, admitted client.Object) (*unstructured.Unstructured, error) {
	patch, err := client.MergeFrom(wanted).Data(admitted)
	if err != nil {
		return nil, err
	}
	return merged(u, patch)
}

// store stores the new object, or removes it if it is being deleted and has no finalizers left. The lock must be held.
func (a *API) store(w write, old *object, next *unstructured.Unstructured) *unstructured.Unstructured {
	next.SetResourceVersion(a.nextVersion())
	e := Event{Kind: w.kind.gvk, Key: w.key, By: w.fieldManager, Subresource: w.subresource, old: old}
	if old != nil {
		e.Old = old.content
	}
	if !next.GetDeletionTimestamp().IsZero() && len(next.GetFinalizers()) == 0 {
		a.set(w.kind, w.key, nil)
		e.old = &object{content: next} // informers report the last state
		a.events = append(a.events, e)
		return next
	}
	e.new = &object{content: next}
	e.New = next
	a.set(w.kind, w.key, e.new)
	a.events = append(a.events, e)
	return next
}

// remove deletes an object immediately, or sets its deletion timestamp if it has finalizers. The lock must be held;
// mayDelete releases it for a time. [Client] calls it for deletes, and [API.Remove].
func (a *API) remove(ctx context.Context, w write, old *object, preconditions *metav1.Preconditions) error {
	o := old.content
	if p := preconditions; p != nil {
		if p.UID != nil && *p.UID != o.GetUID() {
			return apierrors.NewConflict(w.resource(), w.key.Name, fmt.Errorf("the UID in the precondition is %s, that of the object %s", *p.UID, o.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion() {
			return apierrors.NewConflict(w.resource(), w.key.Name, fmt.Errorf("the object was changed since resource version %s", *p.ResourceVersion))
		}
	}
	if o.GetDeletionTimestamp() != nil || w.dryRun {
		return nil
	}
	if err := a.mayDelete(ctx, w, old); err != nil {
		return err
	}
	next := o.DeepCopy()
	next.SetDeletionTimestamp(new(a.time()))
	next.SetGeneration(o.GetGeneration() + 1)
	a.store(w, old, next)
	return nil
}

// mayDelete calls admission for a deletion, without holding the lock.
func (a *API) mayDelete(ctx context.Context, w write, old *object) error {
	if a.admission == nil || w.kind.crd == nil || !a.scheme.Recognizes(w.kind.gvk) {
		return nil
	}
	o, err := a.typed(old.content)
	if err != nil {
		return err
	}
	o.GetObjectKind().SetGroupVersionKind(w.kind.gvk)
	a.mu.Unlock()
	err = a.admission.RefuseDeletion(ctx, o)
	a.mu.Lock()
	if err == nil && a.objects[w.kind.gvk.GroupKind()][w.key] != old {
		err = apierrors.NewConflict(w.resource(), w.key.Name, errors.New("the object was changed meanwhile"))
	}
	return err
}

// isSame reports whether two objects are equal except for resource versions and the timestamps of managed fields.
func isSame(a, b *unstructured.Unstructured) bool {
	if !sameContent(a.Object, b.Object, "metadata") {
		return false
	}
	x, y := metaOf(a), metaOf(b)
	if !sameContent(x, y, "managedFields", "resourceVersion") {
		return false
	}
	return sameEntries(entriesOf(x), entriesOf(y))
}

func entriesOf(meta map[string]any) []any {
	list, _ := meta["managedFields"].([]any)
	return list
}

func sameEntries(a, b []any) bool {
	return slices.EqualFunc(a, b, func(x, y any) bool {
		p, isEntry := x.(map[string]any)
		q, both := y.(map[string]any)
		return isEntry && both && sameContent(p, q, "time")
	})
}

func metaOf(u *unstructured.Unstructured) map[string]any {
	m, _ := u.Object["metadata"].(map[string]any)
	return m
}

// specChanged reports whether anything except metadata and status changed.
func specChanged(a, b *unstructured.Unstructured) bool {
	return !sameContent(a.Object, b.Object, "metadata", statusSubresource)
}

func sameMetadata(a, b *unstructured.Unstructured) bool {
	return sameContent(metaOf(a), metaOf(b), "managedFields", "resourceVersion", "generation")
}

func sameContent(a, b map[string]any, except ...string) bool {
	for name := range b {
		if _, ok := a[name]; !ok && !slices.Contains(except, name) {
			return false
		}
	}
	for name, value := range a {
		if other, ok := b[name]; !slices.Contains(except, name) && (!ok || !reflect.DeepEqual(value, other)) {
			return false
		}
	}
	return true
}

// unstructuredOf returns an unstructured copy of the object of a request. [Client] calls it before it stores the
// object.
func (a *API) unstructuredOf(o client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(o, a.scheme)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetGroupVersionKind(gvk)
	return out, nil
}
