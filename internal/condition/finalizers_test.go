package condition_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipwayhq/slipway/internal/condition"
)

func TestHeld(t *testing.T) { // CL-12, MD-14, MD-15
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	o := func(name string, deleted *metav1.Time, finalizers ...string) metav1.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: deleted, Finalizers: finalizers}}
	}
	foo := schema.GroupKind{Group: "infra.example.org", Kind: "Foo"}
	const says = "; blocked by finalizers, which their owners have to remove: "
	for name, tc := range map[string]struct {
		reason  string
		kind    schema.GroupKind
		objects []metav1.Object
		want    string
	}{
		"stays":           {"a finalizer holds nothing yet", foo, []metav1.Object{o("a", nil, "x/y")}, ""},
		"its own":         {"its controller is at work", foo, []metav1.Object{o("a", &at, "foo.infra.example.org", "infra.example.org/foo")}, ""},
		"another's":       {"", foo, []metav1.Object{o("a", &at, "foo.infra.example.org", "acme.example.com/ipam")}, says + "Foo a, deleted at 2026-01-02T03:04:05Z, by acme.example.com/ipam"},
		"of a like group": {"a suffix is not enough", foo, []metav1.Object{o("a", &at, "notinfra.example.org/x")}, says + "Foo a, deleted at 2026-01-02T03:04:05Z, by notinfra.example.org/x"},
		"of a Node":       {"Nodes have no controller of their own", schema.GroupKind{Kind: "Node"}, []metav1.Object{o("n", &at, "example.com/inventory")}, says + "Node n, deleted at 2026-01-02T03:04:05Z, by example.com/inventory"},
		"garbage":         {"the garbage collector waits for what the object owns", foo, []metav1.Object{o("a", &at, "foregroundDeletion")}, says + "Foo a, deleted at 2026-01-02T03:04:05Z, by foregroundDeletion"},
		"many": {"three are named", foo, []metav1.Object{o("a", &at, "x/1"), o("b", &at, "x/1"), o("c", &at, "x/1"), o("d", &at, "x/1")}, says +
			"Foo a, deleted at 2026-01-02T03:04:05Z, by x/1, Foo b, deleted at 2026-01-02T03:04:05Z, by x/1, Foo c, deleted at 2026-01-02T03:04:05Z, by x/1, ... (1 more)"},
		"none": {"", foo, []metav1.Object{nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := condition.ForeignFinalizersText(tc.kind, tc.objects...); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
