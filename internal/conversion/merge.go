package conversion

import "reflect"

// absent represents a missing key.
type absent struct{}

// merge applies the changes from unchanged to changed to original. All three are JSON values. Unchanged parts retain
// their original value; changed parts get the new value, at the deepest possible level. [Converter] calls it when an
// object with a data annotation is converted back to the hub: original is the hub in the annotation, unchanged is what
// its spoke converts to, and changed is what the object converts to.
func merge(original, unchanged, changed any) any {
	if reflect.DeepEqual(unchanged, changed) {
		return original
	}
	switch changed := changed.(type) {
	case map[string]any:
		before, ok := original.(map[string]any)
		if base, isMap := unchanged.(map[string]any); ok && isMap {
			return mergeMaps(before, base, changed)
		}
	case []any:
		before, ok := original.([]any)
		if base, isList := unchanged.([]any); ok && isList {
			return mergeLists(before, base, changed)
		}
	}
	return changed
}

func mergeMaps(original, unchanged, changed map[string]any) map[string]any {
	merged := map[string]any{}
	keys := map[string]bool{}
	for _, m := range []map[string]any{original, unchanged, changed} {
		for key := range m {
			keys[key] = true
		}
	}
	for key := range keys {
		value := merge(valueAt(original, key), valueAt(unchanged, key), valueAt(changed, key))
		if _, gone := value.(absent); !gone {
			merged[key] = value
		}
	}
	return merged
}

func valueAt(m map[string]any, key string) any {
	if value, ok := m[key]; ok {
		return value
	}
	return absent{}
}

// mergeLists pairs the items of the lists by key, or else by index, and merges each pair. Items without a pair are
// copied from the changed list, which determines order and length.
func mergeLists(original, unchanged, changed []any) []any {
	identify := identityOf(original, unchanged, changed)
	if identify == "" && (len(original) != len(unchanged) || len(unchanged) != len(changed)) {
		return changed
	}
	merged := make([]any, 0, len(changed))
	for i, item := range changed {
		j, k := i, i
		if identify != "" {
			j, k = find(original, identify, item), find(unchanged, identify, item)
		}
		if j < 0 || k < 0 {
			merged = append(merged, item)
			continue
		}
		merged = append(merged, merge(original[j], unchanged[k], item))
	}
	return merged
}

// identityOf returns the first key for which every item of every list has a string that is unique in its list. The keys
// are those that identify items in lists of Cluster API's kinds.
func identityOf(lists ...[]any) string {
	for _, key := range [...]string{"name", "type", "path", "key", "device", "kind"} {
		if identifies(key, lists) {
			return key
		}
	}
	return ""
}

func identifies(key string, lists [][]any) bool {
	for _, list := range lists {
		seen := map[string]bool{}
		for _, item := range list {
			object, _ := item.(map[string]any)
			text, ok := object[key].(string)
			if !ok || seen[text] {
				return false
			}
			seen[text] = true
		}
	}
	return true
}

func find(list []any, key string, item any) int {
	wanted := item.(map[string]any)[key]
	for i := range list {
		if list[i].(map[string]any)[key] == wanted {
			return i
		}
	}
	return -1
}
