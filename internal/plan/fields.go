package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Field is a changed field. `slipway plan` prints it, and scripts read its JSON form.
type Field struct {
	Path string `json:"path"`
	// From is unset if the field is added, To if it is removed.
	From any `json:"from,omitempty"`
	To   any `json:"to,omitempty"`
}

// redacted replaces secret values.
const redacted = "(not shown)"

// fields returns the fields of an object that differ, for [ObjectChange], except the status and the fields that the API
// server and the controllers maintain. Values of Secrets are not shown. The runLog treats an object without such fields
// as unchanged.
func fields(before, after *unstructured.Unstructured) []Field {
	var out []Field
	compareMaps("", userContent(before), userContent(after), &out)
	if after.GetKind() == "Secret" {
		for i := range out {
			if strings.HasPrefix(out[i].Path, "data.") || strings.HasPrefix(out[i].Path, "stringData.") {
				out[i].From, out[i].To = redacted, redacted
			}
		}
	}
	return out
}

// userContent returns the part of an object that users consider its content.
func userContent(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "status")
	delete(out, "apiVersion")
	meta := map[string]any{}
	if labels := u.GetLabels(); len(labels) > 0 {
		meta["labels"] = anyMap(labels)
	}
	annotations := u.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) > 0 {
		meta["annotations"] = anyMap(annotations)
	}
	if u.GetDeletionTimestamp() != nil {
		meta["deletionTimestamp"] = "set"
	}
	out["metadata"] = meta
	return out
}

func anyMap(in map[string]string) map[string]any {
	out := map[string]any{}
	for k, v := range in {
		out[k] = v
	}
	return out
}

func compareMaps(path string, before, after map[string]any, out *[]Field) {
	for _, name := range names(before, after) {
		compareValues(join(path, name), before[name], after[name], out)
	}
}

// names returns the sorted names in both maps.
func names(a, b map[string]any) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func join(path, name string) string {
	if strings.ContainsAny(name, "./") {
		return path + "[" + name + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func compareValues(path string, before, after any, out *[]Field) {
	if reflect.DeepEqual(before, after) {
		return
	}
	b, isMap := before.(map[string]any)
	a, both := after.(map[string]any)
	if isMap && both || isMap && after == nil || both && before == nil {
		compareMaps(path, b, a, out)
		return
	}
	x, isList := before.([]any)
	y, both := after.([]any)
	if isList && both {
		compareLists(path, x, y, out)
		return
	}
	*out = append(*out, Field{Path: path, From: before, To: after})
}

// compareLists compares items by name if all of them have one, and by position otherwise.
func compareLists(path string, before, after []any, out *[]Field) {
	b, named := byName(before)
	a, both := byName(after)
	if named && both {
		for _, name := range names(b, a) {
			compareValues(path+"["+name+"]", b[name], a[name], out)
		}
		return
	}
	for i := range max(len(before), len(after)) {
		var x, y any
		if i < len(before) {
			x = before[i]
		}
		if i < len(after) {
			y = after[i]
		}
		compareValues(fmt.Sprintf("%s[%d]", path, i), x, y, out)
	}
}

func byName(list []any) (map[string]any, bool) {
	out := map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, ok := m["name"].(string)
		if _, twice := out[name]; !ok || twice {
			return nil, false
		}
		out[name] = item
	}
	return out, len(list) > 0
}
