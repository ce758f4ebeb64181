package topology

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/topology"
)

// Whoever scales what a topology owns sees why it does not last.
func TestUpdated(t *testing.T) {
	object := func(replicas any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": "MachineDeployment", "metadata": map[string]any{"name": "md"}, "spec": map[string]any{}}}
		if replicas != nil {
			o.Object["spec"].(map[string]any)["replicas"] = replicas
		}
		return o
	}
	typed := func(n *int32) client.Object {
		return &clusterv1.MachineDeployment{Spec: clusterv1.MachineDeploymentSpec{Replicas: n}}
	}
	const plain = "Updated MachineDeployment md"
	const back = plain + " from 5 to 2 replicas, as spec.topology of the Cluster requires; change them there"
	for name, c := range map[string]struct {
		live client.Object
		want any
		says string
	}{
		"set back":           {typed(new(int32(5))), int64(2), back},
		"another API object": {object(int64(5)), int64(2), back},
		"something else":     {typed(new(int32(2))), int64(2), plain},
		"an autoscaler's":    {typed(new(int32(5))), nil, plain},
		"not set yet":        {typed(nil), int64(2), plain},
		"a pool":             {&clusterv1.MachinePool{Spec: clusterv1.MachinePoolSpec{Replicas: new(int32(5))}}, int64(2), back},
	} {
		if got := updated(&topology.Part{Live: c.live, Want: object(c.want)}); got.Message != c.says {
			t.Errorf("%s: %q, want %q", name, got.Message, c.says)
		}
	}
}

// Of several steps, the condition tells the one that failed.
func TestMessageOfAStep(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{"kind": "FooTemplate", "metadata": map[string]any{"name": "a"}}}
	create, apply := create{&topology.Part{Want: template}}, apply{&topology.Part{Want: template}}
	refused := errors.New(".spec.x: field not declared in schema")
	for _, c := range []struct {
		err  error
		says string
	}{
		{&stepError{step: create, err: refused}, "FooTemplate a cannot be created: .spec.x: field not declared in schema"},
		{&stepError{step: create, err: errors.New(".spec.replicas: field not declared in schema")}, "FooTemplate a cannot be created: .spec.replicas: field not declared in schema; this kind has no replicas: remove spec.topology.controlPlane.replicas from the Cluster"},
		{fmt.Errorf("%s: %w", groups{}, &stepError{step: apply, err: refused}), "FooTemplate a cannot be changed: .spec.x: field not declared in schema"},
		{&stepError{step: retryFailures{}, err: refused}, sentence(retryFailures{}.String()) + ": .spec.x: field not declared in schema"},
		{&stepError{step: create, err: fault.New(fault.Invalid, "AlreadyExists", "FooTemplate a exists: rename it")}, "FooTemplate a exists: rename it"},
	} {
		if got := message(c.err); got != c.says {
			t.Errorf("%q, want %q", got, c.says)
		}
	}
	var step reconciler.Action = create
	if err := (&stepError{step: step, err: refused}); !errors.Is(err, refused) || err.Error() != create.String()+": "+refused.Error() {
		t.Errorf("the log lacks something: %v", err)
	}
}
