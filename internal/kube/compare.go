package kube

import (
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// [Writer.Apply] and [Writer.StatusChange] skip an apply that would change nothing, and [IsApplied] reports it to the
// decisions of controllers. This has two conditions:
//
//	contains:  every field that the controller wants is in the object, with the same value
//	ownsMore:  the controller owns no field of the object that it no longer wants
//
// Both compare JSON values. Lists of objects with a merge key (conditions by type, owner references by UID, see keys)
// are compared by key, because other writers have entries in them; every other list must be equal.

// contains reports whether live has all values of want.
func contains(live, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range w {
			if have, ok := l[key]; !ok || !contains(have, value) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		return ok && containsList(l, w)
	}
	return live == want
}

func containsList(live, want []any) bool {
	byType, keyed := index(live)
	wanted, alsoKeyed := index(want)
	if keyed && alsoKeyed {
		for key, value := range wanted {
			if have, ok := byType[key]; !ok || !contains(have, value) {
				return false
			}
		}
		return true
	}
	if len(live) != len(want) {
		return false
	}
	for i := range want {
		if !contains(live[i], want[i]) || !contains(want[i], live[i]) {
			return false
		}
	}
	return true
}

// keys returns the merge keys of lists of objects: conditions and addresses, owner references, readiness gates, taints.
func keys() [][]string {
	return [][]string{{"type"}, {"uid"}, {"conditionType"}, {"key", "effect"}}
}

// index returns the items of a list by their merge key, if all have one and it is unique.
func index(list []any) (map[string]any, bool) {
	for _, fields := range keys() {
		if out, ok := indexBy(list, fields); ok {
			return out, true
		}
	}
	return nil, false
}

func indexBy(list []any, fields []string) (map[string]any, bool) {
	out := make(map[string]any, len(list))
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		id := ""
		for _, field := range fields {
			value, ok := m[field].(string)
			if !ok {
				return nil, false
			}
			id += field + "=" + value + "\x00"
		}
		if _, twice := out[id]; twice {
			return nil, false
		}
		out[id] = item
	}
	return out, true
}

// owned returns the fields that manager has applied to the object (or to its subresource), in the form of
// metav1.FieldsV1, or nil if there are none. The result must not be changed. An entry without a subresource may include
// the status too: API servers separate them, client-go's object tracker does not.
func owned(entries []metav1.ManagedFieldsEntry, manager, subresource string) map[string]any {
	var together map[string]any
	for _, e := range entries {
		if e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationApply || e.FieldsV1 == nil {
			continue
		}
		fields := parsedFieldSets.object(e.FieldsV1.Raw)
		if fields == nil {
			continue
		}
		if e.Subresource == subresource && subresource != "" {
			return fields
		}
		if e.Subresource == "" {
			together = fields
		}
	}
	return part(together, subresource)
}

// part returns the fields of the object itself, or of its subresource.
func part(fields map[string]any, subresource string) map[string]any {
	if subresource == "" {
		if _, ok := fields["f:status"]; ok {
			fields = maps.Clone(fields)
			delete(fields, "f:status")
		}
		return fields
	}
	below, ok := fields["f:"+subresource]
	if !ok {
		return nil
	}
	return map[string]any{"f:" + subresource: below}
}

// ownsMore reports whether fields has anything in live that want does not have. A leaf of fields owns the whole value.
func ownsMore(fields map[string]any, live, want any) bool {
	for name, below := range fields {
		if name == "." {
			continue
		}
		wanted, ok := followStep(name, want)
		if !ok {
			return true
		}
		have, _ := followStep(name, live)
		inner, _ := below.(map[string]any)
		if len(inner) == 0 && !contains(wanted, have) {
			return true
		}
		if ownsMore(inner, have, wanted) {
			return true
		}
	}
	return false
}

// followStep follows one step of a path in FieldsV1: f: a field, k: the item with these keys, v: the value itself in a
// set, i: the item at an index.
func followStep(step string, in any) (any, bool) {
	kind, rest, _ := strings.Cut(step, ":")
	switch kind {
	case "f":
		m, _ := in.(map[string]any)
		value, ok := m[rest]
		return value, ok
	case "k":
		keys := parsedFieldSets.object([]byte(rest))
		if keys == nil {
			return nil, false
		}
		return find(in, keys)
	case "v":
		var value any
		if json.Unmarshal([]byte(rest), &value) != nil {
			return nil, false
		}
		return find(in, value)
	case "i":
		list, _ := in.([]any)
		i, err := strconv.Atoi(rest)
		if err != nil || i < 0 || i >= len(list) {
			return nil, false
		}
		return list[i], true
	}
	return nil, false
}

func find(in, like any) (any, bool) {
	list, _ := in.([]any)
	for _, item := range list {
		if contains(item, like) {
			return item, true
		}
	}
	return nil, false
}

// jsonValue returns v in the form of unstructured objects, in which numbers of all Go types compare equal.
func jsonValue(v any) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&struct {
		Value any `json:"value"`
	}{v})
	if err != nil {
		return nil, err
	}
	value, ok := out["value"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%T is not an object in JSON", v)
	}
	return value, nil
}

// statusValue returns the status of an object, as {"status": …}, without the rest, most of which is managed fields.
func statusValue(live client.Object) (map[string]any, error) {
	if u, ok := live.(runtime.Unstructured); ok {
		return jsonValue(map[string]any{"status": u.UnstructuredContent()["status"]})
	}
	status := reflect.ValueOf(live).Elem().FieldByName("Status")
	if !status.IsValid() {
		return map[string]any{}, nil
	}
	return jsonValue(map[string]any{"status": status.Interface()})
}
