package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/slipwayhq/slipway/internal/fault"
)

// CoreManagerPrefix is the prefix of the field managers of Cluster API's controllers. Slipway writes topologies with
// such a name, because other programs rely on it, and takes over fields from others.
const CoreManagerPrefix = "capi-"

// ArrivalManager is the field manager of objects that `slipway move` has created in its target cluster, until their
// original field managers are restored ([Writer.RestoreManagers]).
const ArrivalManager = ManagerPrefix + "arrival"

// IsArriving reports whether an object was created by a move that is about to write it again. The driver (package
// reconciler) then does not write the status of the paused object, because a write in the meantime would make the write
// of the move fail.
func IsArriving(o client.Object) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == ArrivalManager })
}

// CreateApplied creates the object by server-side apply, so that the same field manager can later apply changes without
// owning a field twice. Controllers create objects with it that they update by [Writer.Apply] later. If an object with
// this name and other values exists, it returns a conflict. want gets the UID and resourceVersion of the created
// object.
func (w *Writer) CreateApplied(ctx context.Context, want *unstructured.Unstructured) error {
	patch, err := applying(want)
	if err != nil {
		return err
	}
	created, err := w.send(ctx, want, "", patch)
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	want.SetUID(created.UID)
	want.SetResourceVersion(created.ResourceVersion)
	return nil
}

// DryRunCreate returns the error that [Writer.CreateApplied] would return, including errors from admission. It writes
// nothing. Package machines calls it after a rejection, because a lasting rejection must not create and delete objects.
func (w *Writer) DryRunCreate(ctx context.Context, want *unstructured.Unstructured) error {
	patch, err := applying(want)
	if err != nil {
		return err
	}
	err = w.client.Patch(ctx, want.DeepCopy(), patch, client.DryRunAll, client.FieldOwner(w.owner))
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	return nil
}

// DryRun returns the live object as it would be after applying want. It writes nothing. The topology controller finds
// the changes of an object with it, the KubeadmControlPlane controller the changes of an in-place update. Packages
// certificates, install and providerupgrade of clusterctl check with it what the API server would accept or change.
// Webhooks recognize the dry run by the annotation [clusterv1.TopologyDryRunAnnotation], and accept changes that they
// would otherwise reject.
func (w *Writer) DryRun(ctx context.Context, live client.Object, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer := withUID(want, live.GetUID()).DeepCopy()
	annotations := answer.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.TopologyDryRunAnnotation] = ""
	answer.SetAnnotations(annotations)
	patch, err := applying(answer)
	if err != nil {
		return nil, err
	}
	err = w.client.Patch(ctx, answer, patch, client.DryRunAll, client.ForceOwnership, client.FieldOwner(w.owner))
	if err != nil {
		return nil, fmt.Errorf("applying %s %s as a dry run: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	return answer, nil
}

// IsApplied reports whether applying want would change nothing: live has all its values, and manager has applied no
// other fields to live. want is an object without status. The MachineDeployment and topology controllers and package
// machines decide by it.
func IsApplied(live client.Object, manager string, want map[string]any) (bool, error) {
	w := &Writer{owner: manager}
	return w.unchanged(live, want)
}

// OwnershipTransfer transfers the ownership of fields between field managers. Controllers and package
// clusterctl/install use it for fields that the reference implementation, or an earlier field manager of Slipway,
// applied: without the transfer, both managers own a field, and neither can remove it.
type OwnershipTransfer struct {
	// From are the managers that lose fields, whatever their operation.
	From []string
	// To is the manager that becomes the owner, with operation Apply.
	To string
	// Takes reports whether a field is transferred.
	Takes func(fieldpath.Path) bool
	// Subresource of the fields; empty for fields of the object itself.
	Subresource string
}

// HasChanges reports whether the transfer would change anything, given the managed fields in a cached object; see
// [PruneManagedFields]. Callers check it on a cached object before they read the object live.
func (h OwnershipTransfer) HasChanges(o client.Object) bool {
	_, moves, err := h.apply(o.GetManagedFields())
	return err != nil || moves
}

// TransferOwnership transfers the ownership of fields in an object. The object must have been read live, because a
// cached object does not have all managers. It writes nothing if no field is transferred. The values of the fields do
// not change.
func (w *Writer) TransferOwnership(ctx context.Context, live client.Object, h OwnershipTransfer) error {
	entries, moves, err := h.apply(live.GetManagedFields())
	if err != nil || !moves {
		return err
	}
	if err := w.setManagers(ctx, live, entries); err != nil {
		return fmt.Errorf("transferring fields of %s %s to %s: %w", w.KindOf(live), client.ObjectKeyFromObject(live), h.To, err)
	}
	return nil
}

// RestoreManagers sets the managed fields of an object that this writer created as a copy of another one to the managed
// fields of the original. `slipway move` calls it in the target cluster. When an object is created, an API server
// records the creator as the manager of every field, so that controllers which apply some of them could no longer
// remove them. Other managers that have written the copy since its creation are preserved. It writes nothing if this
// writer manages no field of the object. The object must have been read live.
func (w *Writer) RestoreManagers(ctx context.Context, live client.Object, entries []metav1.ManagedFieldsEntry) error {
	own := w.hasArrived
	if entries = w.Others(entries); len(entries) == 0 || !w.LacksManagers(live) {
		return nil
	}
	for _, e := range live.GetManagedFields() {
		known := func(o metav1.ManagedFieldsEntry) bool {
			return o.Manager == e.Manager && o.Operation == e.Operation && o.Subresource == e.Subresource
		}
		if !own(e) && !slices.ContainsFunc(entries, known) {
			entries = append(entries, e)
		}
	}
	if err := w.setManagers(ctx, live, entries); err != nil {
		return fmt.Errorf("restoring the field managers of %s %s: %w", w.KindOf(live), client.ObjectKeyFromObject(live), err)
	}
	return nil
}

// LacksManagers reports whether this writer or the arrival manager manages fields of an object, so that the original
// managers may still have to be restored. `slipway move` checks it for each object in the target cluster.
func (w *Writer) LacksManagers(live client.Object) bool {
	return slices.ContainsFunc(live.GetManagedFields(), w.hasArrived)
}

// Others returns the entries that [Writer.RestoreManagers] restores.
func (w *Writer) Others(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(entries), w.hasArrived)
}

func (w *Writer) hasArrived(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == w.owner || e.Manager == ArrivalManager
}

func (w *Writer) setManagers(ctx context.Context, live client.Object, entries []metav1.ManagedFieldsEntry) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"managedFields": entries, "resourceVersion": live.GetResourceVersion(),
	}})
	if err != nil {
		return fault.New(fault.Bug, "InvalidPatch", "managed fields of %T cannot be encoded", live).From(err)
	}
	_, err = w.send(ctx, live, "", client.RawPatch(types.MergePatchType, patch))
	return err
}

// apply returns the managed fields after the transfer, and reports whether it changes anything.
func (h OwnershipTransfer) apply(entries []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, bool, error) {
	moved, version := &fieldpath.Set{}, ""
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if !h.from(e) || e.Subresource != h.Subresource || e.FieldsV1 == nil {
			out = append(out, e)
			continue
		}
		taken, kept, err := h.split(e)
		if err != nil {
			return nil, false, err
		}
		if !taken.Empty() {
			moved, version = moved.Union(taken), e.APIVersion
		}
		if !kept.Empty() {
			out = append(out, entryWith(e, kept))
		}
	}
	if moved.Empty() {
		return entries, false, nil
	}
	for i, e := range out {
		if e.Manager == h.To && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == h.Subresource && e.FieldsV1 != nil {
			var have fieldpath.Set
			if err := have.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
				return nil, false, fmt.Errorf("fields of manager %s: %w", e.Manager, err)
			}
			out[i] = entryWith(e, have.Union(moved))
			return out, true, nil
		}
	}
	return append(out, entryWith(metav1.ManagedFieldsEntry{
		Manager: h.To, Operation: metav1.ManagedFieldsOperationApply, APIVersion: version, FieldsType: "FieldsV1", Subresource: h.Subresource,
	}, moved)), true, nil
}

func (h OwnershipTransfer) from(e metav1.ManagedFieldsEntry) bool {
	return slices.Contains(h.From, e.Manager) && (e.Manager != h.To || e.Operation != metav1.ManagedFieldsOperationApply)
}

// split divides the fields of an entry into transferred and remaining fields.
func (h OwnershipTransfer) split(e metav1.ManagedFieldsEntry) (taken, kept *fieldpath.Set, err error) {
	var all fieldpath.Set
	if err := all.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
		return nil, nil, fmt.Errorf("fields of manager %s: %w", e.Manager, err)
	}
	taken, kept = &fieldpath.Set{}, &fieldpath.Set{}
	all.Iterate(func(p fieldpath.Path) {
		if h.Takes(p) {
			taken.Insert(p.Copy())
			return
		}
		kept.Insert(p.Copy())
	})
	return taken, kept, nil
}

func entryWith(e metav1.ManagedFieldsEntry, fields *fieldpath.Set) metav1.ManagedFieldsEntry {
	raw, err := fields.ToJSON()
	if err != nil {
		panic("kube: a set of fields cannot be encoded: " + err.Error()) // cannot happen: it was decoded from JSON
	}
	e.FieldsV1 = metav1.NewFieldsV1(string(raw))
	return e
}

// OwnedKeys are sorted keys of labels and annotations.
type OwnedKeys struct{ Labels, Annotations []string }

// OwnedMetadata returns the keys of the labels and annotations of o that manager has applied and still owns.
// Controllers compare the keys with the desired labels and annotations.
func OwnedMetadata(o client.Object, manager string) OwnedKeys {
	fields, _ := owned(o.GetManagedFields(), manager, "")["f:metadata"].(map[string]any)
	return OwnedKeys{Labels: keysOf(fields["f:labels"]), Annotations: keysOf(fields["f:annotations"])}
}

func keysOf(fields any) []string {
	below, _ := fields.(map[string]any)
	var out []string
	for step := range below {
		if key, ok := strings.CutPrefix(step, "f:"); ok {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}
