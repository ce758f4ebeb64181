package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
)

// This file sends the applies of [Writer.Apply] and [StatusChange.Write]. Server-side apply removes the fields that a
// manager applied before and does not apply now one by one. If an object or list within the object has no other
// content, an API server leaves null in its place, which the CRD's schema rejects: the apply fails as invalid, and so
// would each retry. In this case, apply first removes the fields that would become null.

// change is one apply: what to send, and the live object that it changes.
type change struct {
	live client.Object
	// have and want are the live object and the fields to apply; only the status if the apply is for the status
	// subresource.
	have, want  map[string]any
	subresource string
	body        *unstructured.Unstructured
}

// apply sends the apply. If it fails because it would leave empty values, apply removes these first and sends it again.
func (w *Writer) apply(ctx context.Context, c change) error {
	patch, err := applying(c.body)
	if err != nil {
		return err
	}
	send := func() error {
		_, err := w.send(ctx, c.body, c.subresource, patch, client.ForceOwnership)
		return err
	}
	err = send()
	if c.live == nil || !apierrors.IsInvalid(err) {
		return err
	}
	nulls := emptied(owned(c.live.GetManagedFields(), w.owner, c.subresource), c.have, c.want)
	if len(nulls) == 0 {
		return err
	}
	if err := w.remove(ctx, c, nulls); err != nil {
		return fmt.Errorf("removing what it leaves empty: %w", err)
	}
	return send()
}

// applying returns the apply patch for an object.
func applying(o *unstructured.Unstructured) (client.Patch, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidApply", "what to apply to %s cannot be encoded", o.GetKind()).From(err)
	}
	return client.RawPatch(types.ApplyPatchType, data), nil
}

// remove sends a merge patch that removes fields, with the resourceVersion of the live object as precondition.
func (w *Writer) remove(ctx context.Context, c change, nulls map[string]any) error {
	meta, _ := nulls["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["resourceVersion"] = c.live.GetResourceVersion()
	nulls["metadata"] = meta
	data, err := json.Marshal(nulls)
	if err != nil {
		return fault.New(fault.Bug, "InvalidPatch", "removal of fields of %T cannot be encoded", c.live).From(err)
	}
	_, err = w.send(ctx, c.body, c.subresource, client.RawPatch(types.MergePatchType, data))
	return err
}

// emptied returns the merge patch that removes the values that would be left empty when all fields that are in live and
// not in want are removed.
func emptied(fields, live, want map[string]any) map[string]any {
	out := map[string]any{}
	for step, below := range fields {
		key, ok := strings.CutPrefix(step, "f:")
		inner, _ := below.(map[string]any)
		have, there := live[key]
		if !ok || !there || isAtomic(inner) {
			continue
		}
		wanted := want[key]
		if isEmpty(wanted) {
			if leavesEmpty(inner, have) {
				out[key] = nil
			}
			continue
		}
		l, ok1 := have.(map[string]any)
		w, ok2 := wanted.(map[string]any)
		if ok1 && ok2 {
			if nulls := emptied(inner, l, w); len(nulls) > 0 {
				out[key] = nulls
			}
		}
	}
	return out
}

// isEmpty reports whether a value is nil, or a map or list without items.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil
}

// isAtomic reports whether a value is owned, and therefore removed, as a whole.
func isAtomic(fields map[string]any) bool {
	_, itself := fields["."]
	return len(fields) == 0 || itself
}

// leavesEmpty reports whether removing the fields leaves a value empty.
func leavesEmpty(fields map[string]any, live any) bool {
	switch v := live.(type) {
	case map[string]any:
		for key, value := range v {
			below, ok := fields["f:"+key]
			inner, _ := below.(map[string]any)
			if !ok || !isAtomic(inner) && !leavesEmpty(inner, value) {
				return false
			}
		}
		return true
	case []any:
		items := 0
		for step := range fields {
			if strings.HasPrefix(step, "k:") || strings.HasPrefix(step, "v:") {
				items++
			}
		}
		return items >= len(v)
	}
	return false
}
