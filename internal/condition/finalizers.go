package condition

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ForeignFinalizersText lists the objects (all of one kind) that are being deleted and have finalizers outside their
// own API group, with the deletion timestamp and the finalizers. Controllers append it to the message of a wait for a
// deletion, because foreign finalizers are the most frequent and least visible reason for a stuck deletion. It returns
// an empty string when no such finalizer is left. The text must change only when the finalizers change, because it
// becomes part of a condition. For example, the Cluster and Machine controllers call it.
func ForeignFinalizersText(kind schema.GroupKind, objects ...metav1.Object) string {
	var held []string
	for _, o := range objects {
		if o == nil || o.GetDeletionTimestamp().IsZero() {
			continue
		}
		if _, finalizers := SplitFinalizers(kind.Group, o.GetFinalizers()); len(finalizers) > 0 {
			held = append(held, fmt.Sprintf("%s %s, deleted at %s, by %s", kind.Kind, o.GetName(),
				o.GetDeletionTimestamp().UTC().Format(time.RFC3339), Names(finalizers)))
		}
	}
	if len(held) == 0 {
		return ""
	}
	return "; blocked by finalizers, which their owners have to remove: " + Names(held)
}

// SplitFinalizers returns the finalizers whose domain is the API group of their object or a subdomain of it, and the
// others. [ForeignFinalizersText] and package rootcause call it.
func SplitFinalizers(group string, finalizers []string) (own, foreign []string) {
	for _, finalizer := range finalizers {
		domain, _, _ := strings.Cut(finalizer, "/")
		if group != "" && (domain == group || strings.HasSuffix(domain, "."+group)) {
			own = append(own, finalizer)
		} else {
			foreign = append(foreign, finalizer)
		}
	}
	return own, foreign
}
