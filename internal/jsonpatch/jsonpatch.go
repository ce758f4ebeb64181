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
	for _, operation := range decoded {
		path, err := operation.Path()
		if err != nil {
			return nil, fmt.Errorf("the patch has an operation without a path: %w", err)
		}
		for _, part := range strings.Split(path, "/") {
			if index, err := strconv.ParseUint(part, 10, 64); err == nil && index > MaxIndex {
				return nil, fmt.Errorf("the patch has index %d in a path, at most %d can be used", index, MaxIndex)
			}
		}
	}
	options := patch.NewApplyOptions()
	options.EnsurePathExistsOnAdd = true
	options.AccumulatedCopySizeLimit = maxCopied
	return decoded.ApplyWithOptions(object, options)
}

// clip shortens what an extension sent for a message.
func clip(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
