package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// replaced replaces the data of a Secret: "REDACTED" in base64, which is still valid data.
const replaced = "UkVEQUNURUQ="

// Redact replaces the values in data and stringData of every Secret in a JSON document, and reports whether there was
// one. A document without a Secret, or that is not JSON, is returned unchanged.
func Redact(body []byte) ([]byte, bool) {
	if !bytes.Contains(body, []byte("Secret")) {
		return body, false
	}
	var doc any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&doc) != nil || !redact(doc) {
		return body, false
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return []byte("{}"), true // never the original
	}
	return out, true
}

func redact(v any) (changed bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			changed = redact(e) || changed
		}
	case map[string]any:
		switch v["kind"] {
		case "Secret":
			return blank(v)
		case "SecretList": // its items may lack apiVersion and kind
			items, _ := v["items"].([]any)
			for _, item := range items {
				if secret, ok := item.(map[string]any); ok {
					changed = blank(secret) || changed
				}
			}
			return changed
		}
		for _, e := range v {
			changed = redact(e) || changed
		}
	}
	return changed
}

// blank replaces the values of a Secret, and removes the annotation with the copy of kubectl apply.
func blank(secret map[string]any) (changed bool) {
	for field, value := range map[string]string{"data": replaced, "stringData": "REDACTED"} {
		values, _ := secret[field].(map[string]any)
		for key := range values {
			values[key], changed = value, true
		}
	}
	if metadata, ok := secret["metadata"].(map[string]any); ok {
		const applied = "kubectl.kubernetes.io/last-applied-configuration"
		annotations, _ := metadata["annotations"].(map[string]any)
		if _, ok := annotations[applied]; ok {
			delete(annotations, applied)
			changed = true
		}
	}
	return changed
}

// Object returns the object of a request as Kind namespace/name: its Cluster, Machine or MachineSet, or the Cluster in
// its builtin variables. It returns "" if there is none.
func Object(body []byte) string {
	var r struct {
		Cluster, ClusterClass *named
		Desired               struct{ Machine, MachineSet *named }
		Variables             []struct {
			Name  string
			Value json.RawMessage
		}
	}
	if json.Unmarshal(body, &r) != nil {
		return ""
	}
	for _, o := range []struct {
		kind string
		*named
	}{{"Machine", r.Desired.Machine}, {"MachineSet", r.Desired.MachineSet}, {"Cluster", r.Cluster}, {"ClusterClass", r.ClusterClass}} {
		if o.named != nil {
			return text(o.kind, o.Metadata.Namespace, o.Metadata.Name)
		}
	}
	for _, v := range r.Variables {
		var builtin struct {
			Cluster struct{ Namespace, Name string }
		}
		if v.Name == "builtin" && json.Unmarshal(v.Value, &builtin) == nil {
			return text("Cluster", builtin.Cluster.Namespace, builtin.Cluster.Name)
		}
	}
	return ""
}

type named struct {
	Metadata struct{ Namespace, Name string }
}

func text(kind, namespace, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%s %s", kind, strings.TrimPrefix(namespace+"/"+name, "/"))
}

// Split splits the path of a call, which may start with a prefix of the extension. own is the path without the prefix;
// hook and handler follow the group and version. ok is false if it is not the path of a hook.
func Split(path string) (own, hook, handler string, ok bool) {
	elements := strings.Split(strings.Trim(path, "/"), "/")
	n := slices.IndexFunc(elements, func(e string) bool { return strings.HasPrefix(e, "hooks.runtime.") })
	if n < 0 || len(elements) < n+3 || len(elements) > n+4 {
		return "", "", "", false
	}
	if len(elements) == n+4 {
		handler = elements[n+3]
	}
	return "/" + strings.Join(elements[n:], "/"), elements[n+2], handler, true
}
