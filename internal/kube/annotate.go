package kube

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotate sets an annotation, or removes it if value is nil. It replaces the map, because the object's map may be
// shared.
func Annotate(o client.Object, key string, value *string) {
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if delete(annotations, key); value != nil {
		annotations[key] = *value
	}
	o.SetAnnotations(annotations)
}
