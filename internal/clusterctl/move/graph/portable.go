package graph

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hostedv1 "github.com/slipwayhq/slipway/api/controlplane/v1alpha1"
	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
)

// DeleteForMove is the annotation of the clusterctl contract on an object that is deleted because it was moved to the
// target. Package move sets it before it deletes at the source, and removes it in a rollback.
const DeleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"

// Strip returns a copy of an object without status and cluster-specific metadata, for its creation in another
// management cluster or its export to a file. Package transfer and exports call it for each object.
func Strip(old *unstructured.Unstructured) *unstructured.Unstructured {
	content := maps.Clone(old.Object)
	delete(content, "status")
	o := (&unstructured.Unstructured{Object: content}).DeepCopy()
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetSelfLink("")
	for _, field := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "ownerReferences"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource != "" }))
	if IsDeletedForMove(o) {
		Annotate(o, DeleteForMove, false)
	}
	for _, request := range []string{hostedv1.QuiesceAnnotation, infrav1.CleanHostAnnotation} { // to one management cluster
		if _, is := o.GetAnnotations()[request]; is {
			Annotate(o, request, false)
		}
	}
	return o
}

// IsDeletedForMove reports whether an object is being deleted because it was moved. A transfer creates no object with
// this mark, and a rollback removes the mark.
func IsDeletedForMove(o *unstructured.Unstructured) bool {
	_, marked := o.GetAnnotations()[DeleteForMove]
	return marked
}

// Contains reports whether have contains all content of want. It may have additional defaults. A move compares the
// objects at the target with it before it deletes them at the source.
func Contains(want, have *unstructured.Unstructured) bool {
	for key, value := range want.Object {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			if !covers(mapOf(want.GetLabels()), mapOf(have.GetLabels())) || !covers(mapOf(want.GetAnnotations()), mapOf(have.GetAnnotations())) ||
				!ownersCovered(want, have) {
				return false
			}
		default:
			if !covers(value, have.Object[key]) {
				return false
			}
		}
	}
	return true
}

func ownersCovered(want, have *unstructured.Unstructured) bool {
	for _, w := range want.GetOwnerReferences() {
		if !slices.ContainsFunc(have.GetOwnerReferences(), func(h metav1.OwnerReference) bool { return h.UID == w.UID }) {
			return false
		}
	}
	return true
}

func mapOf(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func covers(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		for k, v := range w {
			if !covers(v, h[k]) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok {
			return len(w) == 0 && have == nil
		}
		return slices.EqualFunc(w, h, covers)
	}
	return reflect.DeepEqual(want, have) || number(want) != "" && number(want) == number(have)
}

// number returns the JSON form of a number, because other decoders may use another Go type.
func number(v any) string {
	switch v.(type) {
	case int64, float64, int:
		data, err := json.Marshal(v)
		if err == nil {
			return string(data)
		}
	}
	return ""
}

// Pause pauses or resumes a Cluster, ClusterClass or SSHHost. To resume, the field or annotation is removed instead of
// set to false. Packages move and transfer call it.
func Pause(o *unstructured.Unstructured, paused bool) {
	if IDOf(o).IsCore(Cluster) {
		if paused {
			_ = unstructured.SetNestedField(o.Object, true, "spec", "paused")
		} else {
			unstructured.RemoveNestedField(o.Object, "spec", "paused")
		}
		return
	}
	Annotate(o, clusterv1.PausedAnnotation, paused)
}

// Annotate sets an annotation to the empty value, or removes it. Package move calls it for the annotations of a move.
func Annotate(o *unstructured.Unstructured, key string, present bool) {
	all := o.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	delete(all, key)
	if present {
		all[key] = ""
	}
	o.SetAnnotations(all)
}
