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

// ManagerPrefix is the prefix of all field managers of Slipway. It must not change, because the fields of existing
// objects are owned by managers with this prefix.
const ManagerPrefix = "slipway-"

// Writer writes objects for one controller, with the controller's field manager. The driver (package reconciler)
// creates one for each controller; commands and webhooks create others. A test checks that controllers write only
// through it.
type Writer struct {
	client client.Client
	owner  string
	writes *Writes
	// others records the writes of all writers in the process; may be nil.
	others *Writes
	// onApply is called for every apply, with the kind and whether it was sent.
	onApply func(kind string, sent bool)
}

// NewWriter returns a writer for the controller with this name; its field manager is "slipway-<name>".
func NewWriter(c client.Client, controller string) *Writer {
	return &Writer{client: c, owner: ManagerPrefix + controller, writes: &Writes{}}
}

// WithController returns a writer with field manager "slipway-<name>" that shares the record of writes. The driver
// writes conditions about pauses and failed reconciliations with it.
func (w *Writer) WithController(controller string) *Writer {
	return w.WithManager(ManagerPrefix + controller)
}

// WithManager returns a writer with the given field manager, which must start with [ManagerPrefix] or
// [CoreManagerPrefix]. It shares the record of writes.
func (w *Writer) WithManager(manager string) *Writer {
	out := *w
	out.owner = manager
	return &out
}

// WithClient returns a writer for another cluster, with the same field manager. Its record of writes is new: the other
// cluster chooses the UIDs and versions of its objects, and a restore brings deleted objects and old versions back.
// Controllers call it for their writes in workload clusters.
func (w *Writer) WithClient(c client.Client) *Writer {
	return &Writer{client: c, owner: w.owner, writes: &Writes{}}
}

// ShareWritesWith shares a record of writes with other writers in the process. A patch of an object that another writer
// has changed since it was read is then a conflict without a request to the API server.
func (w *Writer) ShareWritesWith(others *Writes) { w.others = others }

// OnApply sets a function that is called for every apply, with the kind and whether it was sent or skipped because it
// would change nothing.
func (w *Writer) OnApply(f func(kind string, sent bool)) { w.onApply = f }

func (w *Writer) applied(kind string, sent bool) {
	if w.onApply != nil {
		w.onApply(kind, sent)
	}
}

// Writes returns the record of writes.
func (w *Writer) Writes() *Writes { return w.writes }

// Apply applies want by server-side apply. want has every field outside the status that this controller sets; fields
// that it applied before and that are not in want are removed. live is the object as last read, or nil if it does not
// exist yet. Fields of other managers are overwritten. want must have apiVersion, kind, name and namespace.
func (w *Writer) Apply(ctx context.Context, live client.Object, want *unstructured.Unstructured) error {
	c := change{live: live, body: want}
	if live != nil {
		var err error
		if c.have, c.want, err = compared(live, want.Object); err != nil || w.matches(live, c.have, appliedFields{fields: c.want}) {
			w.applied(want.GetKind(), false)
			return err
		}
		c.body = withUID(want, live.GetUID()) // prevents recreating an object that was deleted in the meantime
	}
	w.applied(want.GetKind(), true)
	if err := w.apply(ctx, c); err != nil {
		return fmt.Errorf("applying %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	return nil
}

// withUID returns a shallow copy of the object with a UID.
func withUID(o *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	content := maps.Clone(o.Object)
	if meta, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = maps.Clone(meta)
	}
	out := &unstructured.Unstructured{Object: content}
	out.SetUID(uid)
	return out
}

// ApplyStatus applies status to live by server-side apply. status is the complete status that this controller reports;
// fields that it applied before and that are not in status are removed.
func (w *Writer) ApplyStatus(ctx context.Context, live client.Object, status any) error {
	change, err := w.StatusChange(live, status)
	if err != nil || change == nil {
		return err
	}
	return change.Write(ctx)
}

// Patch changes single fields of an object that has other writers. change modifies a copy of live, and only its changes
// are sent. It returns a conflict if the object was written since live was read.
func (w *Writer) Patch(ctx context.Context, live client.Object, change func(client.Object)) error {
	return w.patchLocked(ctx, live, "", change)
}

// PatchStatus is like Patch, for single fields of a status that another controller reports. The controllers of SSHHosts
// and SSHMachines write claims with it.
func (w *Writer) PatchStatus(ctx context.Context, live client.Object, change func(client.Object)) error {
	return w.patchLocked(ctx, live, "status", change)
}

// patchLocked patches an object or a subresource if the object has not changed since it was read.
func (w *Writer) patchLocked(ctx context.Context, live client.Object, subresource string, change func(client.Object)) error {
	data, err := lockedPatch(live, change)
	if err != nil || onlyLock(data) {
		return err
	}
	if w.others != nil && w.others.Stale(live) { // the API server would reject it for the same reason
		return w.stale(live)
	}
	return w.patch(ctx, live, subresource, data)
}

// lockedPatch returns a merge patch that fails if the object has changed since it was read.
func lockedPatch(live client.Object, change func(client.Object)) ([]byte, error) {
	before := withoutManagedFields(live)
	after := before.DeepCopyObject().(client.Object)
	change(after)
	data, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidPatch", "change of %T cannot be encoded", live).From(err)
	}
	return data, nil
}

// PatchOwned is like Patch, for fields that only this controller writes: writes of other writers since live was read,
// most often to the status, are no conflict. Writes of this writer since then are.
func (w *Writer) PatchOwned(ctx context.Context, live client.Object, change func(client.Object)) error {
	before := withoutManagedFields(live)
	before.SetUID("") // so that the patch includes the UID as a precondition
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
	return w.patch(ctx, live, "", data)
}

func (w *Writer) patch(ctx context.Context, live client.Object, subresource string, data []byte) error {
	_, err := w.patched(ctx, live, subresource, data)
	return err
}

// patched sends a merge patch of an object or a subresource, and returns the metadata of the object after it.
func (w *Writer) patched(
	ctx context.Context, live client.Object, subresource string, data []byte,
) (*metav1.PartialObjectMetadata, error) {
	if w.writes.Stale(live) {
		return nil, w.stale(live)
	}
	after, err := w.send(ctx, live, subresource, client.RawPatch(types.MergePatchType, data))
	if err != nil {
		return nil, fmt.Errorf("patching %s %s: %w", w.KindOf(live), client.ObjectKeyFromObject(live), err)
	}
	return after, nil
}

// send sends a patch of an object or a subresource, and records the write. It requests only the metadata in the
// response, to save encoding and decoding the rest.
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

// withoutManagedFields returns a shallow copy of the object without managed fields, which are half of its size and
// never changed here. The copy must not be modified.
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

// Create creates the object. If it exists already, this is a success if it has the same controller owner (a repeated
// create after a crash), or if obj has none; otherwise it is an invalid state that a user has to resolve.
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
			return nil // the cache does not have it yet; its event enqueues the owner
		}
		return fmt.Errorf("reading %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
	}
	want, have := metav1.GetControllerOf(obj), metav1.GetControllerOf(found)
	if want == nil || (have != nil && have.UID == want.UID) {
		return nil
	}
	return fault.New(fault.Invalid, "AlreadyExists",
		"%s %s exists and has another owner; rename or delete it", kind, client.ObjectKeyFromObject(obj))
}

// Delete deletes the object if it has not changed since it was read. An object that does not exist or is already being
// deleted is a success.
func (w *Writer) Delete(ctx context.Context, obj client.Object) error {
	if w.writes.Stale(obj) { // the API server would reject it for the same reason
		return w.stale(obj)
	}
	version := obj.GetResourceVersion()
	return w.delete(ctx, obj, &version)
}

// DeleteAfter changes an object that has not changed since it was read, and deletes it as it is after the change. An
// object that does not exist is a success. If another writer changes the object in between, it is not deleted.
//
// remains reports that the object has finalizers, for example because a webhook added one, and exists until they are
// removed. `slipway move` deletes the objects in the source cluster with it.
func (w *Writer) DeleteAfter(ctx context.Context, live client.Object, change func(client.Object)) (remains bool, err error) {
	data, err := lockedPatch(live, change)
	if err != nil {
		return false, err
	}
	if onlyLock(data) {
		return len(live.GetFinalizers()) > 0, w.Delete(ctx, live)
	}
	switch after, err := w.patched(ctx, live, "", data); {
	case fault.KindOf(err) == fault.Gone:
		return false, nil
	case err != nil:
		return false, err
	default:
		version := after.ResourceVersion
		return len(after.Finalizers) > 0, w.delete(ctx, live, &version)
	}
}

// DeleteAnyway deletes the object even if it was changed since it was read, because it is deleted together with its
// owner. An object that does not exist or is already being deleted is a success.
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

// stale returns the conflict that the API server would return.
func (w *Writer) stale(obj client.Object) error {
	return fault.New(fault.Conflict, "StaleObject", "%s %s was changed by this program since it was read",
		w.KindOf(obj), client.ObjectKeyFromObject(obj))
}

// unchanged reports whether applying want would change nothing.
func (w *Writer) unchanged(live client.Object, want map[string]any) (bool, error) {
	have, wanted, err := compared(live, want)
	return err == nil && w.matches(live, have, appliedFields{fields: wanted}), err
}

// compared returns an object, and the fields to apply to it, in comparable form.
func compared(live client.Object, want map[string]any) (have, wanted map[string]any, err error) {
	if have, err = jsonValue(live); err != nil {
		return nil, nil, fault.New(fault.Bug, "InvalidObject", "%T cannot be encoded", live).From(err)
	}
	if wanted, err = jsonValue(withoutIdentity(want)); err != nil {
		return nil, nil, fault.New(fault.Bug, "InvalidObject", "what to apply to %T cannot be encoded", live).From(err)
	}
	return have, wanted, nil
}

// withoutIdentity returns want without the fields that identify the object.
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

// identify returns an object that has only the identity of live.
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

// KindOf returns the kind of an object, or its Go type if it is not in the scheme.
func (w *Writer) KindOf(obj client.Object) string {
	gvk, err := w.kind(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return gvk.Kind
}

// onlyLock reports whether a merge patch contains only the resourceVersion as its precondition.
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
