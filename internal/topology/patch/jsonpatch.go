package patch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	patch "github.com/evanphx/json-patch/v5"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/redact"
)

// Limits, which are our choice.
const (
	// maxIndex is the maximum array index in a patch. Missing elements up to the index are created.
	maxIndex = 10000
	// maxCreated is the maximum number of missing elements that the operations of one patch may create together. It
	// limits the time too, which is quadratic, because an array is copied for each missing element.
	maxCreated = 2 * maxIndex
	// maxCopied is the maximum number of bytes that the copy operations of one patch may copy.
	maxCopied = 1 << 20
)

// ApplyPatch applies a JSON patch or JSON merge patch from an extension to an object. Limits prevent a patch, which is
// untrusted, from using excessive memory. If the patch is an empty document, it returns the object unchanged. This
// package calls it for generated patches of a ClusterClass, and package inplace to compute what an in-place update
// would change. It does not restrict which fields a patch changes, because that depends on the hook.
func ApplyPatch(kind runtimehooksv1.PatchType, object, data []byte) ([]byte, error) {
	if isEmptyPatch(data) {
		return object, nil
	}
	switch kind {
	case runtimehooksv1.JSONPatchType:
		return operations(object, data)
	case runtimehooksv1.JSONMergePatchType:
		return patch.MergePatch(object, data)
	}
	return nil, fmt.Errorf("patch type %q is unknown: use %s or %s", redact.Clip(string(kind), maxQuotedText), runtimehooksv1.JSONPatchType, runtimehooksv1.JSONMergePatchType)
}

// isEmptyPatch reports whether a patch is one of the documents that mean that there is nothing to change.
func isEmptyPatch(data []byte) bool {
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

// countCreating returns the number of operations at the start of the patch that may create missing parent elements.
// These are the operations whose indices in paths add up to at most maxCreated, even if all elements up to them were
// missing. The following operations may only add to existing elements, so that patches of long arrays can have any
// number of operations.
func countCreating(operations patch.Patch) (int, error) {
	creating, created := 0, 0
	for _, operation := range operations {
		path, err := operation.Path()
		if err != nil {
			return 0, fmt.Errorf("the patch has an operation without a path: %w", err)
		}
		for _, part := range strings.Split(path, "/") {
			index, err := strconv.Atoi(part) // the same parsing as in the patch library, which allows a sign
			if err != nil {
				continue
			}
			if index > maxIndex {
				return 0, fmt.Errorf("the patch has index %d in a path, at most %d can be used", index, maxIndex)
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
