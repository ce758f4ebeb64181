// Package patch computes and applies the patches that hooks exchange: JSON patches (RFC 6902) and JSON merge patches
// (RFC 7386).
//
// Does: [Diff] says how one object becomes another; [Apply] does it; [Typed] lets a typed change of an object lead to
// a patch that leaves alone what the Go type does not know.
//
// Never: changes what it is given.
//
// Read first: [Diff].
package patch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	diff "gomodules.xyz/jsonpatch/v2"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// Diff returns the patch of the format that makes one JSON object the other; nil where they are equal. A merge patch
// replaces lists as a whole, and cannot set a field to null.
func Diff(format hooksv1.PatchType, from, to []byte) ([]byte, error) {
	if jsonpatch.Equal(from, to) {
		return nil, nil
	}
	switch format {
	case hooksv1.JSONMergePatchType:
		p, err := jsonpatch.CreateMergePatch(from, to)
		if err != nil {
			return nil, fmt.Errorf("computing a merge patch: %w", err)
		}
		return p, nil
	case hooksv1.JSONPatchType:
		return operations(from, to)
	}
	return nil, unknown(format)
}

// operations are sorted: the same change is the same patch. Within a list the order matters and stays.
func operations(from, to []byte) ([]byte, error) {
	ops, err := diff.CreatePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("computing a JSON patch: %w", err)
	}
	if !slices.ContainsFunc(ops, func(o diff.Operation) bool { return touchesList(o.Path) }) {
		slices.SortStableFunc(ops, func(a, b diff.Operation) int { return cmp.Compare(a.Path, b.Path) })
	}
	p, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("encoding a JSON patch: %w", err)
	}
	return p, nil
}

// touchesList reports whether a JSON pointer goes through an element of a list.
func touchesList(pointer string) bool {
	for element := range strings.SplitSeq(pointer, "/") {
		if element == "-" || element != "" && strings.Trim(element, "0123456789") == "" {
			return true
		}
	}
	return false
}

// Apply applies a patch to a JSON object.
func Apply(format hooksv1.PatchType, object, patch []byte) ([]byte, error) {
	switch format {
	case hooksv1.JSONMergePatchType:
		out, err := jsonpatch.MergePatch(object, patch)
		if err != nil {
			return nil, fmt.Errorf("applying a merge patch: %w", err)
		}
		return out, nil
	case hooksv1.JSONPatchType:
		p, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, fmt.Errorf("reading a JSON patch: %w", err)
		}
		out, err := p.Apply(object)
		if err != nil {
			return nil, fmt.Errorf("applying a JSON patch: %w", err)
		}
		return out, nil
	}
	return nil, unknown(format)
}

// Typed returns what becomes of the JSON object when change changes it as a T. Fields that T does not know, and fields
// that T would write although they were not there, stay as they were; except in list elements, since a changed list is
// replaced as a whole.
func Typed[T any](object []byte, change func(*T) error) ([]byte, error) {
	typed := new(T)
	if err := json.Unmarshal(object, typed); err != nil {
		return nil, fmt.Errorf("reading the object as %T: %w", *typed, err)
	}
	before, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	if err := change(typed); err != nil {
		return nil, err
	}
	after, err := json.Marshal(typed)
	if err != nil {
		return nil, fmt.Errorf("encoding the changed object: %w", err)
	}
	merge, err := Diff(hooksv1.JSONMergePatchType, before, after)
	if err != nil || merge == nil {
		return object, err
	}
	return Apply(hooksv1.JSONMergePatchType, object, merge)
}

func unknown(format hooksv1.PatchType) error {
	return fmt.Errorf("the patch type %q is neither %s nor %s", format, hooksv1.JSONPatchType, hooksv1.JSONMergePatchType)
}
