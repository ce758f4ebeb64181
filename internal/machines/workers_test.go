package machines

import (
	"context"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// counted counts the lists of a reader.
type counted struct {
	client.Reader
	lists atomic.Int32
}

func (c *counted) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	c.lists.Add(1)
	return c.Reader.List(ctx, list, o...)
}

// That there are workers is known from the cache; that there are none is asked past it, where Machines and pools of others do not count.
func TestWorkers(t *testing.T) {
	s := runtime.NewScheme()
	if err := clusterv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	machine := func(name, cluster string, more ...string) client.Object {
		labels := map[string]string{clusterv1.ClusterNameLabel: cluster}
		for _, l := range more {
			labels[l] = ""
		}
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
	}
	pool := func(name, cluster string) client.Object {
		return &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}}}
	}
	plane := machine("plane", "mine", clusterv1.MachineControlPlaneLabel)
	for name, tc := range map[string]struct {
		cached, live []client.Object
		want         int
		asks         int32
	}{
		"the cache knows":        {[]client.Object{plane, machine("a", "mine"), machine("b", "mine")}, nil, 2, 0},
		"it does not know yet":   {[]client.Object{plane}, []client.Object{plane, machine("new", "mine")}, 1, 2},
		"those of others":        {[]client.Object{plane, machine("x", "other")}, []client.Object{plane, machine("x", "other"), pool("p", "other")}, 0, 2},
		"pools":                  {nil, []client.Object{plane, pool("p", "mine"), pool("q", "mine")}, 2, 2},
		"Machines besides pools": {nil, []client.Object{pool("p", "mine"), pool("q", "mine"), machine("of-p", "mine")}, 1, 2},
	} {
		live := &counted{Reader: fake.NewClientBuilder().WithScheme(s).WithObjects(tc.live...).Build()}
		w := NewWorkers(fake.NewClientBuilder().WithScheme(s).WithObjects(tc.cached...).Build(), live)
		got, err := w.Count(t.Context(), client.ObjectKey{Namespace: "ns", Name: "mine"})
		if err != nil || got != tc.want || live.lists.Load() != tc.asks {
			t.Errorf("%s: got %d, %v and %d lists, want %d and %d", name, got, err, live.lists.Load(), tc.want, tc.asks)
		}
	}
}
