package installation

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipwayhq/slipway/internal/clusterctl/progress"
)

type recorded struct{ steps []progress.Step }

func (r *recorded) Show(steps []progress.Step) { r.steps = steps }

// TestShow: a provider that goes waits for other things than one that comes.
func TestShow(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": "n"}}}
	seen := &recorded{}
	Runner{Progress: seen}.show([]Step{
		{Verb: Stop, Provider: "goes", Object: object}, {Verb: Delete, Provider: "goes", Object: object},
		{Verb: Delete, Provider: "comes", Object: object}, {Verb: Apply, Provider: "comes", Object: object},
	}, 4)
	want := []progress.Step{{Name: "goes", Done: true, Ends: "its objects are gone"}, {Name: "comes", Done: true, Ends: "its objects are there"}}
	if diff := cmp.Diff(want, seen.steps); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
