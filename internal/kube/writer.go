package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/slipwayhq/slipway/internal/fault"
)

// Prefix starts the name of every field manager of this program.
const Prefix = "slipway-"

// Writer writes for one controller.
type Writer struct {
	client client.Client
	owner  string
	writes *Writes
	// others is what all writers of the process have written; nil: not known.
	others *Writes
	// onApply is called for every apply: the kind, and whether it was sent.
	onApply func(kind string, sent bool)
}

// NewWriter returns the writer of the controller with this name; its field manager is "slipway-<name>".
func NewWriter(c client.Client, controller string) *Writer {
	return &Writer{client: c, owner: Prefix + controller, writes: &Writes{}}
}

// As returns a writer with another field manager, "slipway-<name>", that shares the record of writes.
func (w *Writer) As(controller string) *Writer {
	return &Writer{client: w.client, owner: Prefix + controller, writes: w.writes, others: w.others, onApply: w.onApply}
}

// Among makes the writer one of several of a process that share a record of what they wrote: a patch of what another of them wrote since
// it was read is a conflict without the API server being asked.
func (w *Writer) Among(others *Writes) { w.others = others }

// OnApply sets the function that is called for every apply: the kind, and whether it was sent or would have changed nothing.
func (w *Writer) OnApply(f func(kind string, sent bool)) { w.onApply = f }

func (w *Writer) applied(kind string, sent bool) {
	if w.onApply != nil {
		w.onApply(kind, sent)
	}
}

// Writes returns the record of what was written.
func (w *Writer) Writes() *Writes { return w.writes }

// Apply makes the object equal to want, by server-side apply: want has every field outside of the status that this controller
// sets, and fields that it applied before and are not in want are removed. live is
// the object as last read, or nil if it does not exist yet. Fields of others are taken over.
// Want must have apiVersion, kind, name and namespace.
func (w *Writer) Apply(ctx context.Context, live client.Object, want *unstructured.Unstructured) error {
	c := change{live: live, body: want}
	if live != nil {
		var err error
		if c.have, c.want, err = compared(live, want.Object); err != nil || w.matches(live, c.have, side{fields: c.want}) {
			w.applied(want.GetKind(), false)
			return err
		}
		c.body = withUID(want, live.GetUID()) // never creates again what was deleted meanwhile
	}
	w.applied(want.GetKind(), true)
	if err := w.apply(ctx, c); err != nil {
		return fmt.Errorf("applying %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	return nil
}

// withUID returns the object with a UID. The rest is not copied.
func withUID(o *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	content := maps.Clone(o.Object)
	if meta, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = maps.Clone(meta)
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetUID(uid)
	return out
}

// ApplyStatus makes the status of live equal to status, by server-side apply: status is everything that
// this controller reports, and what it reported before and does not report now is removed.
func (w *Writer) ApplyStatus(ctx context.Context, live client.Object, status any) error {
	change, err := w.StatusChange(live, status)
	if err != nil || change == nil {
		return err
	}
	return change.Write(ctx)
}

// Patch changes single fields of an object that has other writers too: change gets a copy of live, and only
// what it changed is sent. Another write since live was read is a conflict, never overwritten.
func (w *Writer) Patch(ctx context.Context, live client.Object, change func(client.Object)) error {
	before := withoutManagedFields(live)
	after := before.DeepCopyObject().(client.Object)
	change(after)
	data, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
	if err != nil {
		return fault.New(fault.Bug, "InvalidPatch", "change of %T cannot be encoded", live).From(err)
	}
	if onlyLock(data) {
		return nil
	}
	if w.others != nil && w.others.Stale(live) { // the API server would refuse it for the same reason
		return w.stale(live)
	}
	return w.patch(ctx, live, data)
}

// PatchOwned is Patch for fields that this controller alone writes: what others have written to the object since live was read, its
// status most often, is no conflict. What this writer has written since then is.
func (w *Writer) PatchOwned(ctx context.Context, live client.Object, change func(client.Object)) error {
	before := withoutManagedFields(live)
	before.SetUID("") // so that the patch has it: it is of this object, and not of a later one of its name
	after := before.DeepCopyObject().(client.Object)
	change(after)
	data, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return fault.New(fault.Bug, "InvalidPatch", "change of %T cannot be encoded", live).From(err)
	}
	if string(data) == "{}" {
		return nil
	}
	after.SetUID(live.GetUID())
	if data, err = client.MergeFrom(before).Data(after); err != nil {
		return fault.New(fault.Bug, "InvalidPatch", "change of %T cannot be encoded", live).From(err)
	}
	return w.patch(ctx, live, data)
}

func (w *Writer) patch(ctx context.Context, live client.Object, data []byte) error {
	if w.writes.Stale(live) {
		return w.stale(live)
	}
	if _, err := w.send(ctx, live, "", client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("patching %s %s: %w", w.KindOf(live), client.ObjectKeyFromObject(live), err)
	}
	return nil
}

// send sends a patch of an object, or of its status, and records what was written. It requests only the metadata of the
// object in return: the API server would encode the rest, and this program decode it, for nothing.
func (w *Writer) send(
	ctx context.Context, o client.Object, subresource string, patch client.Patch, with ...client.PatchOption,
) (*metav1.PartialObjectMetadata, error) {
	gvk, err := w.kind(o)
	if err != nil {
		return nil, err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	answer.SetGroupVersionKind(gvk)
	options := (&client.PatchOptions{FieldManager: w.owner}).ApplyOptions(with)
	if subresource == "" {
		err = w.client.Patch(ctx, answer, patch, options)
	} else {
		err = w.client.SubResource(subresource).Patch(ctx, answer, patch, &client.SubResourcePatchOptions{PatchOptions: *options})
	}
	if err != nil {
		return nil, err
	}
	w.record(answer)
	return answer, nil
}

func (w *Writer) record(o client.Object) {
	w.writes.record(o)
	if w.others != nil {
		w.others.record(o)
	}
}

// withoutManagedFields returns the object without what is half of it and never changed here. The rest is not copied and must
// not be changed.
func withoutManagedFields(o client.Object) client.Object {
	if u, ok := o.(*unstructured.Unstructured); ok {
		content := maps.Clone(u.Object)
		if meta, ok := content["metadata"].(map[string]any); ok {
			meta = maps.Clone(meta)
			delete(meta, "managedFields")
			content["metadata"] = meta
		}
		return &unstructured.Unstructured{Object: content}
	}
	value := reflect.ValueOf(o).Elem()
	out := reflect.New(value.Type())
	out.Elem().Set(value)
	shallow := out.Interface().(client.Object)
	shallow.SetManagedFields(nil)
	return shallow
}

// Create creates the object. One that exists already is a success if it has the same controller owner (a
// repeat after a crash), and else invalid: a person has to decide which of the two is to exist.
func (w *Writer) Create(ctx context.Context, obj client.Object) error {
	kind := w.KindOf(obj)
	err := w.client.Create(ctx, obj, client.FieldOwner(w.owner))
	if apierrors.IsAlreadyExists(err) {
		return w.adopted(ctx, kind, obj)
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
	}
	w.record(obj)
	return nil
}

func (w *Writer) adopted(ctx context.Context, kind string, obj client.Object) error {
	found := obj.DeepCopyObject().(client.Object)
	if err := w.client.Get(ctx, client.ObjectKeyFromObject(obj), found); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // the cache has not seen it yet; its event enqueues the owner
		}
		return fmt.Errorf("reading %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
	}
	want, have := metav1.GetControllerOf(obj), metav1.GetControllerOf(found)
	if want == nil || (have != nil && have.UID == want.UID) {
		return nil
	}
	return fault.New(fault.Invalid, "AlreadyExists",
		"%s %s exists and belongs to something else; rename or delete it", kind, client.ObjectKeyFromObject(obj))
}

// Delete deletes the object if it still is in the state that was read, by which it was decided. One that does not exist or is
// being deleted already is a success.
func (w *Writer) Delete(ctx context.Context, obj client.Object) error {
	if w.writes.Stale(obj) { // the API server would refuse it for the same reason
		return w.stale(obj)
	}
	version := obj.GetResourceVersion()
	return w.delete(ctx, obj, &version)
}

// DeleteAnyway deletes the object whatever was written to it since it was read: it is deleted with its owner.
// One that does not exist or is being deleted already is a success.
func (w *Writer) DeleteAnyway(ctx context.Context, obj client.Object) error {
	return w.delete(ctx, obj, nil)
}

func (w *Writer) delete(ctx context.Context, obj client.Object, version *string) error {
	uid := obj.GetUID()
	if !obj.GetDeletionTimestamp().IsZero() || w.writes.isDeleted(uid) {
		return nil
	}
	err := w.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: version},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s %s: %w", w.KindOf(obj), client.ObjectKeyFromObject(obj), err)
	}
	w.writes.markDeleted(uid)
	return nil
}

// stale is the conflict that the API server would answer with.
func (w *Writer) stale(obj client.Object) error {
	return fault.New(fault.Conflict, "StaleObject", "%s %s was changed by this program since it was read",
		w.KindOf(obj), client.ObjectKeyFromObject(obj))
}

// unchanged reports whether applying want would change nothing.
func (w *Writer) unchanged(live client.Object, want map[string]any) (bool, error) {
	have, wanted, err := compared(live, want)
	return err == nil && w.matches(live, have, side{fields: wanted}), err
}

// compared returns an object, and what to apply to it, as they are compared.
func compared(live client.Object, want map[string]any) (have, wanted map[string]any, err error) {
	if have, err = jsonValue(live); err != nil {
		return nil, nil, fault.New(fault.Bug, "InvalidObject", "%T cannot be encoded", live).From(err)
	}
	if wanted, err = jsonValue(withoutIdentity(want)); err != nil {
		return nil, nil, fault.New(fault.Bug, "InvalidObject", "what to apply to %T cannot be encoded", live).From(err)
	}
	return have, wanted, nil
}

// withoutIdentity returns want without what identifies the object.
func withoutIdentity(want map[string]any) map[string]any {
	out := maps.Clone(want)
	delete(out, "apiVersion")
	delete(out, "kind")
	meta, ok := out["metadata"].(map[string]any)
	if !ok {
		return out
	}
	rest := maps.Clone(meta)
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion"} {
		delete(rest, key)
	}
	out["metadata"] = rest
	if len(rest) == 0 {
		delete(out, "metadata")
	}
	return out
}

// identify returns an object that has nothing but the identity of live.
func (w *Writer) identify(live client.Object) (*unstructured.Unstructured, error) {
	gvk, err := w.kind(live)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(live.GetNamespace())
	u.SetName(live.GetName())
	u.SetUID(live.GetUID())
	return u, nil
}

func (w *Writer) kind(obj client.Object) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(obj, w.client.Scheme())
	if err != nil {
		return gvk, fault.New(fault.Bug, "UnknownKind", "%T is not in the scheme", obj).From(err)
	}
	return gvk, nil
}

// KindOf names the kind of an object, or its Go type where the scheme does not know it.
func (w *Writer) KindOf(obj client.Object) string {
	gvk, err := w.kind(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return gvk.Kind
}

// onlyLock reports whether a merge patch holds nothing but the resourceVersion it is conditional on.
func onlyLock(patch []byte) bool {
	var p map[string]map[string]any
	if json.Unmarshal(patch, &p) != nil {
		return false
	}
	meta, ok := p["metadata"]
	if !ok {
		return len(p) == 0
	}
	_, locked := meta["resourceVersion"]
	return locked && len(meta) == 1 && len(p) == 1
}
