// Package patch computes and applies the patches in hook responses: JSON patches (RFC 6902) and JSON merge patches (RFC
// 7386). [Diff] computes a patch, [Apply] applies it, and [Typed] changes an object through a Go type and preserves
// fields that the type does not define. Arguments are not modified.
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

// Diff returns the patch that transforms one JSON object into the other; nil if they are equal. A merge patch replaces
// lists as a whole, and cannot set a field to null.
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

// operations returns a JSON patch with sorted operations, so that the same change always results in the same patch. If
// a list element is changed, the order is significant, and not modified.
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

// touchesList reports whether a JSON pointer contains a list element.
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

// Typed decodes the JSON object as a T, calls change, and returns the changed object. Fields that T does not define,
// and fields that encoding T would add, are left unchanged, except in list elements, because a changed list is replaced
// as a whole.
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
