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

// Server-side apply removes, one by one, the fields that a manager applied before and does not apply now. Where these
// were all that an object or a list within the object held, an API server leaves null in its place, and the CRD's schema
// refuses that: the apply fails as invalid, and each retry would. Then what would be null is removed first.

// change is one apply: what to send, of what, and the live object that it changes.
type change struct {
	live client.Object
	// have and want are the live object and what to apply, with the status where the apply is of that.
	have, want  map[string]any
	subresource string
	body        *unstructured.Unstructured
}

// apply sends the apply. Where it fails because it leaves something empty, that is removed first and the apply repeated.
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

// applying is the patch that applies an object.
func applying(o *unstructured.Unstructured) (client.Patch, error) {
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fault.New(fault.Bug, "InvalidApply", "what to apply to %s cannot be encoded", o.GetKind()).From(err)
	}
	return client.RawPatch(types.ApplyPatchType, data), nil
}

// remove removes what a merge patch says is null, if the live object is the newest.
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

// emptied returns the merge patch that removes what would be left empty when all fields that are in live and not in
// want are removed.
func emptied(fields, live, want map[string]any) map[string]any {
	out := map[string]any{}
	for step, below := range fields {
		key, ok := strings.CutPrefix(step, "f:")
		inner, _ := below.(map[string]any)
		have, there := live[key]
		if !ok || !there || isOwnedWhole(inner) {
			continue
		}
		wanted := want[key]
		if isEmpty(wanted) {
			if covers(inner, have) {
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

// isEmpty reports whether a value holds nothing.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil
}

// isOwnedWhole reports whether a value is owned as a whole, and is removed as that.
func isOwnedWhole(fields map[string]any) bool {
	_, itself := fields["."]
	return len(fields) == 0 || itself
}

// covers reports whether nothing is left of a value when the fields are removed.
func covers(fields map[string]any, live any) bool {
	switch v := live.(type) {
	case map[string]any:
		for key, value := range v {
			below, ok := fields["f:"+key]
			inner, _ := below.(map[string]any)
			if !ok || !isOwnedWhole(inner) && !covers(inner, value) {
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
