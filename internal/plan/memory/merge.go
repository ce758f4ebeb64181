package memory

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// merged returns a copy of the object with a merge patch (RFC 7386) applied, for patches by clients and for defaults of
// admission.
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
