package hook

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipwayhq/slipway/test/hooktest"
)

// RT-03: a selector that cannot be read does not change for whom an extension is.
func TestInvalidNamespaceSelector(t *testing.T) {
	w, x := newWorld(t), hooktest.Start(t, hooktest.Options{})
	x.Handle(hooktest.Handler("check", "BeforeClusterCreate"), hooktest.Respond(answered("called", 0)))
	c := x.ExtensionConfig("ext")
	c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "prod"}}
	w.mustDiscover(c)
	c.Generation++
	c.Spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "stage", Operator: "Like"}}
	if s := w.discover(c); s.Problem == nil || s.Problem.Reason != "InvalidNamespaceSelector" {
		t.Fatalf("problem: %v", s.Problem)
	}
	for namespace, want := range map[string]string{"prod": "called", "ns": ""} {
		call, response := creation()
		if _, err := w.CallAll(t.Context(), cluster(namespace), call); err != nil || response.Message != want {
			t.Errorf("%s: message %q, %v; want %q", namespace, response.Message, err, want)
		}
	}
}
