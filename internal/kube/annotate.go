package kube

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotate sets an annotation, or removes it if value is nil. Controllers call it on the copy that [Writer.Patch]
// passes to them. It replaces the map, because the copy may share it with the object in the cache.
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
