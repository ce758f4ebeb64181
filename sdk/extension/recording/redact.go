package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// replaced stands where the data of a Secret was: "REDACTED" in base64, so that it is still valid data.
const replaced = "UkVEQUNURUQ="

// Redact replaces the values in data and stringData of every Secret in a JSON document, and reports whether there was
// one. A document without a Secret, or that is not JSON, is returned as it is.
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
		case "SecretList": // its items need not say what they are
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

// blank replaces the values of a Secret, also in the annotation that kubectl apply keeps a copy in.
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

// Object returns what a request is about as Kind namespace/name, and an empty text where it is about nothing that has
// a name: the Cluster, the Machine or the MachineSet in it, or the Cluster of its builtin variables.
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

// Split takes the path of a call apart. The first elements may be a prefix of the extension; hook and handler are what
// comes after the group and version of a hook. ok is false where the path is not that of a hook.
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
