// Package jsonpatch applies the patches that extensions answer with.
//
// Does: applies a JSON patch or a JSON merge patch to an object ([Apply]), within limits: what an extension sends costs no more
// memory than an object is worth.
//
// Never: judges what a patch changes; that depends on the hook.
//
// Read first: [Apply].
package jsonpatch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	patch "github.com/evanphx/json-patch/v5"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

const (
	// MaxIndex is the highest index of an array that a patch may name: what is missing up to it is created.
	MaxIndex = 10000
	// maxCreated is how many elements the operations of one patch may create together on the way to what they add. An array is
	// recreated with each element that is missing, so that the time is its square.
	maxCreated = 2 * MaxIndex
	// maxCopied is how many bytes the copy operations of one patch may copy.
	maxCopied = 1 << 20
)

// Apply returns what a patch of the type makes of an object. A patch in one of the forms that are sent where there is nothing to
// change returns the object.
func Apply(kind runtimehooksv1.PatchType, object, data []byte) ([]byte, error) {
	if ChangesNothing(data) {
		return object, nil
	}
	switch kind {
	case runtimehooksv1.JSONPatchType:
		return operations(object, data)
	case runtimehooksv1.JSONMergePatchType:
		return patch.MergePatch(object, data)
	}
	return nil, fmt.Errorf("patch type %q is unknown: use %s or %s", clip(string(kind)), runtimehooksv1.JSONPatchType, runtimehooksv1.JSONMergePatchType)
}

// ChangesNothing reports whether a patch is one of the forms that are sent where there is nothing to change.
func ChangesNothing(data []byte) bool {
	switch string(bytes.TrimSpace(data)) {
	case "", "null", "[]", "{}":
		return true
	}
	return false
}

func operations(object, data []byte) ([]byte, error) {
	decoded, err := patch.DecodePatch(data)
	if err != nil {
		return nil, fmt.Errorf("the patch cannot be read: %w", err)
	}
	creating, err := countCreating(decoded)
	if err != nil {
		return nil, err
	}
	options := patch.NewApplyOptions()
	options.EnsurePathExistsOnAdd = true
	options.AccumulatedCopySizeLimit = maxCopied
	object, err = decoded[:creating].ApplyWithOptions(object, options)
	if err != nil || creating == len(decoded) {
		return object, err
	}
	options.EnsurePathExistsOnAdd = false
	return decoded[creating:].ApplyWithOptions(object, options)
}

// countCreating returns how many operations, from the first one on, may create what is missing on the way to what they add: as long as
// the indices in their paths are no more than maxCreated together, even if all elements up to them were missing. Those after them add to
// what is there, so that patches of long arrays are applied whatever their number.
func countCreating(operations patch.Patch) (int, error) {
	creating, created := 0, 0
	for _, operation := range operations {
		path, err := operation.Path()
		if err != nil {
			return 0, fmt.Errorf("the patch has an operation without a path: %w", err)
		}
		for _, part := range strings.Split(path, "/") {
			index, err := strconv.Atoi(part) // as what applies it does: a sign may be in front of the digits
			if err != nil {
				continue
			}
			if index > MaxIndex {
				return 0, fmt.Errorf("the patch has index %d in a path, at most %d can be used", index, MaxIndex)
			}
			if operation.Kind() == "add" {
				created += max(index, 0)
			}
		}
		if created <= maxCreated {
			creating++
		}
	}
	return creating, nil
}

// clip shortens what an extension sent for a message.
func clip(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
