package inplace

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/slipwayhq/slipway/internal/topology/patch"
)

// This file decides from the patches in the response to a CanUpdate hook whether the extension makes all changes.
// [Caller] calls uncovered for each response. The hook's contract defines that every change in a spec must be covered,
// because otherwise the Machine would be updated only in part.

// mostUncovered is the maximum number of uncovered changes that a message lists.
const mostUncovered = 10

// part is one object of a CanUpdate request: its current and desired JSON, and the patch in the extension's
// response.
type part struct {
	// name identifies the object, such as "Machine".
	name             string
	current, desired []byte
	patch            hooksv1.Patch
	// normal converts JSON of the object to the form of the desired JSON. If it is nil, no conversion is needed.
	normal func([]byte) ([]byte, error)
}

// Patches must cover all changes below these paths: in an object of a Machine, and in a template.

func machineRoot() []string  { return []string{"spec"} }
func templateRoot() []string { return []string{"spec", "template", "spec"} }

// uncovered returns the sorted changes that are left after applying the patches, such as "LocalMachine
// spec.memory". Changes outside root are ignored, both desired changes, which are applied without an extension, and
// changes by patches. The error names the patch that cannot be applied. [Caller.CanUpdateMachine] and
// [Caller.CanUpdateMachineSet] call it for the response of the extension.
func uncovered(root []string, parts ...part) ([]string, error) {
	var out []string
	for _, p := range parts {
		left, err := p.uncovered(root)
		if err != nil {
			return nil, fmt.Errorf("the patch of %s: %w", p.name, err)
		}
		for _, path := range left {
			out = append(out, p.name+" "+strings.Join(path, "."))
		}
	}
	slices.Sort(out)
	return out, nil
}

func (p part) uncovered(root []string) ([][]string, error) {
	after := p.current
	if p.patch.IsDefined() && len(p.current) > 0 {
		var err error
		if after, err = patch.ApplyPatch(p.patch.PatchType, p.current, p.patch.Patch); err != nil {
			return nil, err
		}
		if p.normal != nil {
			if after, err = p.normal(after); err != nil {
				return nil, fmt.Errorf("the remaining difference cannot be read: %w", err)
			}
		}
	}
	is, err := valueAt(root, after)
	if err != nil {
		return nil, fmt.Errorf("the remaining difference cannot be read: %w", err)
	}
	want, err := valueAt(root, p.desired)
	if err != nil {
		return nil, err
	}
	return differences(is, want, root), nil
}

// valueAt returns the value at a path of an object without null fields, which are equivalent to absent fields.
func valueAt(root []string, object []byte) (any, error) {
	if len(object) == 0 {
		return nil, nil
	}
	var content map[string]any
	if err := utiljson.Unmarshal(object, &content); err != nil {
		return nil, err
	}
	var value any = content
	for _, name := range root {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	return withoutNulls(value), nil
}

func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if item == nil {
				delete(v, key)
			} else {
				v[key] = withoutNulls(item)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return value
}

// differences returns the paths at which two values differ. Lists are compared as a whole.
func differences(a, b any, at []string) [][]string {
	if reflect.DeepEqual(a, b) || isEmptyMap(a) && isEmptyMap(b) {
		return nil
	}
	was, ok := a.(map[string]any)
	is, ok2 := b.(map[string]any)
	if !ok || !ok2 {
		return [][]string{at}
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(keys)
	var out [][]string
	for _, key := range slices.Compact(keys) {
		before, had := was[key]
		after, has := is[key]
		if had != has {
			out = append(out, append(slices.Clone(at), key))
			continue
		}
		out = append(out, differences(before, after, append(slices.Clone(at), key))...)
	}
	return out
}

// isEmptyMap reports whether a value is absent or an empty map. A spec without fields is equivalent to no spec.
func isEmptyMap(v any) bool {
	m, ok := v.(map[string]any)
	return v == nil || ok && len(m) == 0
}

// listed joins changes for a message, up to mostUncovered. [Caller.CanUpdateMachine] and [Caller.CanUpdateMachineSet]
// call it for [UpdateCheck].
func listed(changes []string) string {
	if len(changes) > mostUncovered {
		return fmt.Sprintf("%s and %d more", strings.Join(changes[:mostUncovered], ", "), len(changes)-mostUncovered)
	}
	return strings.Join(changes, ", ")
}
