package memory

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// merged returns a copy of the object with a merge patch (RFC 7386) applied.
func merged(u *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	var changes map[string]any
	if err := utiljson.Unmarshal(patch, &changes); err != nil {
		return nil, err
	}
	out := u.DeepCopy()
	mergeInto(out.Object, changes)
	return out, nil
}

func mergeInto(object, changes map[string]any) {
	for name, change := range changes {
		switch change := change.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			inner, ok := object[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
			}
			mergeInto(inner, change)
			object[name] = inner
		default:
			object[name] = change
		}
	}
}

// withKind returns the JSON of an object with its kind and apiVersion, which typed objects may not contain.
func withKind(data []byte, gvk schema.GroupVersionKind) []byte {
	kind, _ := json.Marshal(gvk.Kind)                            // a string can be encoded
	version, _ := json.Marshal(gvk.GroupVersion().String())      // a string can be encoded
	rest := bytes.TrimPrefix(bytes.TrimSpace(data), []byte("{")) // if a key is repeated, the later one wins
	head := fmt.Appendf(nil, `{"kind":%s,"apiVersion":%s`, kind, version)
	if !bytes.HasPrefix(rest, []byte("}")) {
		head = append(head, ',')
	}
	return append(head, rest...)
}
