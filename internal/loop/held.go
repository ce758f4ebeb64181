package loop

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/condition"
)

// Held reports which of the objects, all of one kind, are deleted and have finalizers that are not of their own API group, since when
// they are deleted, and that the owners of the finalizers have to act. It is to be appended to the message of a wait for the end of
// a deletion: the finalizers of other parties are the most frequent reason why it does not come, and the least visible. Empty: no
// such finalizer is left. The text is the same for as long as the finalizers are.
func Held(kind schema.GroupKind, objects ...metav1.Object) string {
	var held []string
	for _, o := range objects {
		if o == nil || o.GetDeletionTimestamp().IsZero() {
			continue
		}
		if finalizers := foreignFinalizers(kind.Group, o); len(finalizers) > 0 {
			held = append(held, fmt.Sprintf("%s %s, deleted at %s, by %s", kind.Kind, o.GetName(),
				o.GetDeletionTimestamp().UTC().Format(time.RFC3339), condition.Names(finalizers)))
		}
	}
	if len(held) == 0 {
		return ""
	}
	return "; held by finalizers, which those that set them have to remove: " + condition.Names(held)
}

// foreignFinalizers are the finalizers of an object whose names do not end with its API group, as the controller's of a kind do.
func foreignFinalizers(group string, o metav1.Object) []string {
	out := slices.Clone(o.GetFinalizers())
	return slices.DeleteFunc(out, func(finalizer string) bool {
		domain, _, _ := strings.Cut(finalizer, "/")
		return group != "" && (domain == group || strings.HasSuffix(domain, "."+group))
	})
}
