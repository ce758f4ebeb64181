package kube

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotate sets an annotation, in a map of its own: that of the object may be shared. Nil removes it.
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
