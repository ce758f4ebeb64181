package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// FormerManager is the field manager of what the reference implementation writes without server-side apply: every status,
// and small changes of metadata and spec. It is the name of that program, and of many others that are built alike.
const FormerManager = "manager"

const statusSubresource = "status"

// TakeOverStatus makes this writer the owner of fields of a status that the reference implementation has written. As long as
// both own a field, this writer can change it and never remove it. takes reports for a path below status which are meant:
// programs of others may have the same name, and keep theirs. live is the object as a cache has it, newest where it is read
// past that. It writes nothing where nothing is to be taken over, and reads nothing either.
func (w *Writer) TakeOverStatus(ctx context.Context, newest client.Reader, live client.Object, takes func(fieldpath.Path) bool) error {
	h := HandOver{From: []string{FormerManager}, To: w.owner, Subresource: statusSubresource, Takes: belowStatus(takes)}
	if !h.Moves(live) {
		return nil
	}
	fresh := live.DeepCopyObject().(client.Object)
	if err := newest.Get(ctx, client.ObjectKeyFromObject(live), fresh); err != nil {
		return fmt.Errorf("reading the managers of %s %s: %w", w.KindOf(live), client.ObjectKeyFromObject(live), err)
	}
	if fresh.GetUID() != live.GetUID() {
		return nil
	}
	return w.HandOver(ctx, fresh, h)
}

func belowStatus(takes func(fieldpath.Path) bool) func(fieldpath.Path) bool {
	return func(p fieldpath.Path) bool { return len(p) > 1 && fieldAt(p, 0) == "status" && takes(p[1:]) }
}

// Conditions takes the conditions of some types out of a status, see [Writer.TakeOverStatus], and nothing else.
func Conditions(types ...string) func(fieldpath.Path) bool {
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

// AllButConditions takes everything out of a status, and of the conditions those of some types.
func AllButConditions(types ...string) func(fieldpath.Path) bool {
	among := Conditions(types...)
	return func(p fieldpath.Path) bool { return among(p) || fieldAt(p, 0) != "conditions" }
}

// conditionAt returns the type of the condition that a path below status is part of.
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

// fieldAt returns the name of a field of a path, an empty one where there is none.
func fieldAt(p fieldpath.Path, i int) string {
	if i < len(p) && p[i].FieldName != nil {
		return *p[i].FieldName
	}
	return ""
}
