package patch

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// pointer is a parsed JSON pointer (RFC 6901), the path of a change in a patch.
type pointer []string

// parsePointer returns the fields of a JSON pointer. [Compile] calls it for each path of an inline patch.
func parsePointer(text string) (pointer, error) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok || rest == "" {
		return nil, fmt.Errorf("path %q does not begin with / or is empty", text)
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts, nil
}

// String returns the pointer in JSON pointer syntax.
func (p pointer) String() string {
	var b strings.Builder
	for _, part := range p {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return b.String()
}

// mutablePaths returns the paths below which patches may change a template, inline or by an extension. All other fields
// identify the template, or are not used to create the objects of a topology.
func mutablePaths() []pointer {
	return []pointer{
		{"metadata", "labels"}, {"metadata", "annotations"},
		{"spec", "template", "spec"},
		{"spec", "template", "metadata", "labels"}, {"spec", "template", "metadata", "annotations"},
	}
}

// isOpen reports whether a patch may change the value at the path.
func (p pointer) isOpen() bool {
	return slices.ContainsFunc(mutablePaths(), func(o pointer) bool { return len(p) >= len(o) && slices.Equal(p[:len(o)], o) })
}

// leadsToOpen reports whether the path is a parent of a path that a patch may change.
func (p pointer) leadsToOpen() bool {
	return slices.ContainsFunc(mutablePaths(), func(o pointer) bool { return len(p) < len(o) && slices.Equal(p, o[:len(p)]) })
}

// immutableDifference returns the path of the first change that patches must not make, or nil. [Program.Apply] calls it
// after each patch of an extension, and rejects the patch if there is one.
func immutableDifference(before, after any, at pointer) pointer {
	if at.isOpen() || reflect.DeepEqual(before, after) {
		return nil
	}
	b, wasObject := asObject(before)
	a, isObject := asObject(after)
	if !at.leadsToOpen() || !wasObject || !isObject {
		return at
	}
	keys := slices.AppendSeq(slices.Collect(maps.Keys(b)), maps.Keys(a))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if found := immutableDifference(b[key], a[key], append(slices.Clone(at), key)); found != nil {
			return found
		}
	}
	return nil
}

// asObject returns a value as an object; nil counts as an empty object.
func asObject(v any) (map[string]any, bool) {
	if v == nil {
		return nil, true
	}
	object, ok := v.(map[string]any)
	return object, ok
}

// edit makes one change of an inline patch at a path and returns the changed node. Objects and arrays are changed in
// place if possible. The operation add creates missing parents, unlike in RFC 6902. [Program.Apply] calls it for each
// change, on its copy of the template.
func edit(node any, path pointer, op string, value any) (any, error) {
	switch at := node.(type) {
	case map[string]any:
		return editObject(at, path, op, value)
	case []any:
		return editArray(at, path, op, value)
	}
	return nil, fmt.Errorf("the parent of %q is neither an object nor an array", path[0])
}

func editObject(at map[string]any, path pointer, op string, value any) (any, error) {
	key := path[0]
	child, exists := at[key]
	if !exists && op != "add" {
		return nil, fmt.Errorf("field %q does not exist", key)
	}
	if len(path) == 1 {
		if op == "remove" {
			delete(at, key)
		} else {
			at[key] = value
		}
		return at, nil
	}
	if child == nil && op == "add" {
		child = emptyFor(path[1])
	}
	changed, err := edit(child, path[1:], op, value)
	if err != nil {
		return nil, err
	}
	at[key] = changed
	return at, nil
}

// emptyFor returns an empty container for a part of a path.
func emptyFor(part string) any {
	if _, err := strconv.ParseUint(part, 10, 31); err == nil || part == "-" {
		return []any{}
	}
	return map[string]any{}
}

func editArray(at []any, path pointer, op string, value any) (any, error) {
	if len(path) == 1 && op == "add" && path[0] == "-" {
		return append(at, value), nil
	}
	index, err := strconv.ParseUint(path[0], 10, 31)
	n := int(index)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not an index of the array", path[0])
	case len(path) == 1 && op == "add" && n <= len(at):
		return slices.Insert(at, n, value), nil
	case n >= len(at):
		return nil, fmt.Errorf("the array has no item %d", n)
	case len(path) > 1:
		changed, err := edit(at[n], path[1:], op, value)
		if err != nil {
			return nil, err
		}
		at[n] = changed
		return at, nil
	case op == "remove":
		return slices.Delete(at, n, n+1), nil
	}
	at[n] = value
	return at, nil
}
