package condition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ForeignFinalizersText lists the objects (all of one kind) that are being deleted and have finalizers outside their
// own API group, with the deletion timestamp and the finalizers. Controllers append it to the message of a wait for a
// deletion, because foreign finalizers are the most frequent and least visible reason for a stuck deletion. It returns
// an empty string when no such finalizer is left. The text must change only when the finalizers change, because it
// becomes part of a condition.
func ForeignFinalizersText(kind schema.GroupKind, objects ...metav1.Object) string {
	var held []string
	for _, o := range objects {
		if o == nil || o.GetDeletionTimestamp().IsZero() {
			continue
		}
		if finalizers := foreignFinalizers(kind.Group, o); len(finalizers) > 0 {
			held = append(held, fmt.Sprintf("%s %s, deleted at %s, by %s", kind.Kind, o.GetName(),
				o.GetDeletionTimestamp().UTC().Format(time.RFC3339), Names(finalizers)))
		}
	}
	if len(held) == 0 {
		return ""
	}
	return "; blocked by finalizers, which their owners have to remove: " + Names(held)
}

// foreignFinalizers returns the finalizers of an object whose domain is not the object's API group or a subdomain
// of it.
func foreignFinalizers(group string, o metav1.Object) []string {
	out := slices.Clone(o.GetFinalizers())
	return slices.DeleteFunc(out, func(finalizer string) bool {
		domain, _, _ := strings.Cut(finalizer, "/")
		return group != "" && (domain == group || strings.HasSuffix(domain, "."+group))
	})
}
