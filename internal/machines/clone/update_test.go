package clone

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestUpdate(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "i/v2", "kind": "FooTemplate", "metadata": map[string]any{"namespace": "ns", "name": "new"},
		"spec": map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"size": "big", "tier": "theirs"}, "annotations": map[string]any{"a": "1", "note": "theirs"}},
			"spec":     map[string]any{"cpus": int64(4)},
		}},
	}}
	live := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "i/v1", "kind": "Foo", "metadata": map[string]any{"namespace": "ns", "name": "m", "uid": "live", "labels": map[string]any{"x": "y"}},
		"spec": map[string]any{"cpus": int64(2), "providerID": "foo://m"},
	}}
	r := Options{
		Template: contract.Object{Unstructured: template}, Cluster: "c",
		Labels: map[string]string{"tier": "ours"}, Annotations: map[string]string{"note": "ours"},
	}
	got, err := Update(live, r)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "i/v2", "kind": "Foo", "spec": map[string]any{"cpus": int64(4)},
		"metadata": map[string]any{
			"namespace": "ns", "name": "m", "uid": "live", "labels": map[string]any{"size": "big"},
			"annotations": map[string]any{"a": "1", clusterv1.UpdateInProgressAnnotation: "",
				clusterv1.TemplateClonedFromNameAnnotation: "new", clusterv1.TemplateClonedFromGroupKindAnnotation: "FooTemplate.i"},
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("what the owner applies as metadata, and what others set, is left out (-want +got):\n%s", diff)
	}
	live.SetKind("Bar")
	if _, err := Update(live, r); fault.KindOf(err) != fault.Invalid {
		t.Errorf("an object of another kind: %v", err)
	}
}
