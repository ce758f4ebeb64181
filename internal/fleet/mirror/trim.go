package mirror

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/redact"
)

// Limits of what is stored of one object.
const (
	// maxText is the maximum length of a string in bytes, and maxSpecText the maximum in a spec or an annotation, where
	// longer ones are scripts and files.
	maxText     = 4096
	maxSpecText = 1024
	// maxInterned is the maximum length of a string that is stored once, and maxPool the number of these strings.
	maxInterned = 64
	maxPool     = 1 << 16
	// maxWriters is the number of managed fields entries of the status whose managers are stored.
	maxWriters = 4
)

// trimmer removes from objects what no page needs, and stores equal strings once. Objects in memory consist of strings:
// names of fields, types and reasons of conditions, names of other objects. The [Store] and the watches share one.
type trimmer struct {
	mu   sync.Mutex
	pool map[string]string
}

func newTrimmer() *trimmer { return &trimmer{pool: map[string]string{}} }

// trim returns the object without its managed fields, the last applied configuration and deprecated conditions, and with
// long texts shortened. The names of the managers that have written the status remain.
func (t *trimmer) trim(u *unstructured.Unstructured) *unstructured.Unstructured {
	writers := statusWriters(u.GetManagedFields())
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	if conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions"); len(conditions) > 0 {
		unstructured.RemoveNestedField(u.Object, "status", "deprecated")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := &unstructured.Unstructured{Object: t.internMap(u.Object, maxText)}
	if len(writers) > 0 {
		out.SetManagedFields(writers)
	}
	return out
}

// statusWriters returns the entries of managers that have written the status, without their fields.
func statusWriters(entries []metav1.ManagedFieldsEntry) (out []metav1.ManagedFieldsEntry) {
	for _, e := range entries {
		if e.Subresource == "status" && len(out) < maxWriters {
			out = append(out, metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation, Subresource: e.Subresource})
		}
	}
	return out
}

func (t *trimmer) internMap(m map[string]any, most int) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		limit := most
		if k == "spec" || k == "annotations" {
			limit = maxSpecText
		}
		out[t.intern(k)] = t.internValue(v, limit)
	}
	return out
}

func (t *trimmer) internValue(v any, most int) any {
	switch v := v.(type) {
	case string:
		return t.intern(redact.ClipWords(v, most))
	case map[string]any:
		return t.internMap(v, most)
	case []any:
		for i := range v {
			v[i] = t.internValue(v[i], most)
		}
		return v
	}
	return v
}

func (t *trimmer) intern(s string) string {
	if len(s) > maxInterned {
		return s
	}
	if known, ok := t.pool[s]; ok {
		return known
	}
	if len(t.pool) < maxPool {
		t.pool[s] = s
	}
	return s
}
