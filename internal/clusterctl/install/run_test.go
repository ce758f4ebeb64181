package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/operate/progress"
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
	want := []progress.Step{{Name: "goes", Done: true, DoneWhen: "its objects are deleted"}, {Name: "comes", Done: true, DoneWhen: "its objects exist"}}
	if diff := cmp.Diff(want, seen.steps); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Where there is no Node, nothing is begun that would be waited for in vain.
func TestCheckNodes(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": "n"}}}
	apply, await := Step{Verb: Apply, Object: object}, Step{Verb: Await, Object: object}
	empty, full := fake.NewClientBuilder().Build(), fake.NewClientBuilder().WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}).Build()
	for name, tc := range map[string]struct {
		cluster client.Client
		steps   []Step
		refused bool
	}{
		"waits, no Node":   {empty, []Step{apply, await}, true},
		"waits, a Node":    {full, []Step{apply, await}, false},
		"waits for nobody": {empty, []Step{apply}, false},
	} {
		err := Runner{Client: tc.cluster}.checkNodes(t.Context(), tc.steps)
		if known := fault.As(err); (known != nil && known.Reason == reasonNoNode && known.Kind == fault.Invalid) != tc.refused || (err != nil) != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
