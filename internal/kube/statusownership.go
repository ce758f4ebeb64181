package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// upstreamManager is the field manager of the writes that Cluster API's controllers make without server-side apply:
// every status, and small changes of metadata and spec. It is the default name of many controllers, not only of Cluster
// API's.
const upstreamManager = "manager"

const statusSubresource = "status"

// TransferStatusOwnership transfers the ownership of status fields from [upstreamManager] to this writer. The driver
// calls it before it writes a status, and controllers before they write conditions of another controller's object. As
// long as both own a field, this writer can change but never remove it. takes selects the fields by their path below
// status, because other programs with the same manager name must retain their fields. live may be from a cache; newest
// reads live. If nothing is to be transferred, it neither reads nor writes.
func (w *Writer) TransferStatusOwnership(ctx context.Context, newest client.Reader, live client.Object, takes func(fieldpath.Path) bool) error {
	h := OwnershipTransfer{From: []string{upstreamManager}, To: w.owner, Subresource: statusSubresource, Takes: belowStatus(takes)}
	if !h.HasChanges(live) {
		return nil
	}
	fresh := live.DeepCopyObject().(client.Object)
	if err := newest.Get(ctx, client.ObjectKeyFromObject(live), fresh); err != nil {
		return fmt.Errorf("reading the managers of %s %s: %w", w.KindOf(live), client.ObjectKeyFromObject(live), err)
	}
	if fresh.GetUID() != live.GetUID() {
		return nil
	}
	return w.TransferOwnership(ctx, fresh, h)
}

func belowStatus(takes func(fieldpath.Path) bool) func(fieldpath.Path) bool {
	return func(p fieldpath.Path) bool { return len(p) > 1 && fieldAt(p, 0) == "status" && takes(p[1:]) }
}

// OnlyConditions selects only the conditions of the given types in a status; see [Writer.TransferStatusOwnership].
// Controllers pass it for conditions in an object of another controller.
func OnlyConditions(types ...string) func(fieldpath.Path) bool {
	return func(p fieldpath.Path) bool {
		t, is := conditionAt(p)
		for _, want := range types {
			if is && t == want {
				return true
			}
		}
		return false
	}
}

// AllButConditions selects all fields of a status except conditions, and the conditions of the given types. The driver
// passes it for the status of its own object.
func AllButConditions(types ...string) func(fieldpath.Path) bool {
	among := OnlyConditions(types...)
	return func(p fieldpath.Path) bool { return among(p) || fieldAt(p, 0) != "conditions" }
}

// conditionAt returns the type of the condition to which a path below status belongs.
func conditionAt(p fieldpath.Path) (string, bool) {
	if fieldAt(p, 0) != "conditions" || len(p) < 2 || p[1].Key == nil {
		return "", false
	}
	for _, field := range *p[1].Key {
		if field.Name == "type" && field.Value.IsString() {
			return field.Value.AsString(), true
		}
	}
	return "", false
}

// fieldAt returns the name of the i-th field of a path, or an empty string if it is not a field name.
func fieldAt(p fieldpath.Path, i int) string {
	if i < len(p) && p[i].FieldName != nil {
		return *p[i].FieldName
	}
	return ""
}

// OwnsCondition reports whether the controller is an owner of the condition in status.conditions: it applied the
// condition and has not removed it since. Another writer may have changed it. The MachineHealthCheck controller calls
// it for the Machines that it checks.
func OwnsCondition(o client.Object, controller, conditionType string) bool {
	return hasCondition(owned(o.GetManagedFields(), ManagerPrefix+controller, statusSubresource), conditionType)
}

// IsOwnedUpstream reports whether field manager [upstreamManager], which Cluster API's controllers use, still owns a
// condition in status.conditions, because its ownership was not transferred; see [Writer.TransferStatusOwnership]. The
// MachineHealthCheck controller calls it for the Machines that it checks.
func IsOwnedUpstream(o client.Object, conditionType string) bool {
	for _, e := range o.GetManagedFields() {
		if e.Manager == upstreamManager && e.Subresource == statusSubresource && e.FieldsV1 != nil &&
			hasCondition(parsedFieldSets.object(e.FieldsV1.GetRawBytes()), conditionType) {
			return true
		}
	}
	return false
}

// hasCondition reports whether the fields include a condition.
func hasCondition(fields map[string]any, conditionType string) bool {
	for _, step := range []string{"f:status", "f:conditions", `k:{"type":"` + conditionType + `"}`} {
		below, ok := fields[step].(map[string]any)
		if !ok {
			return false
		}
		fields = below
	}
	return true
}
