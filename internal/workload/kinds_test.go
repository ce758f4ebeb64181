package workload

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKindsOfEveryCluster(t *testing.T) {
	tests := map[string]struct {
		kind     schema.GroupKind
		resource string
		scope    apimeta.RESTScopeName
	}{
		"Node":             {schema.GroupKind{Kind: "Node"}, "nodes", apimeta.RESTScopeNameRoot},
		"Secret":           {schema.GroupKind{Kind: "Secret"}, "secrets", apimeta.RESTScopeNameNamespace},
		"DaemonSet":        {schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, "daemonsets", apimeta.RESTScopeNameNamespace},
		"VolumeAttachment": {schema.GroupKind{Group: "storage.k8s.io", Kind: "VolumeAttachment"}, "volumeattachments", apimeta.RESTScopeNameRoot},
	}
	for name, tc := range tests {
		m, err := servedKinds().RESTMapping(tc.kind)
		if err != nil || m.Resource.Resource != tc.resource || m.Scope.Name() != tc.scope {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// What every cluster has is read without asking what there is; for other kinds the cluster is asked.
func TestKindsAreNotDiscovered(t *testing.T) {
	a := newAPI(t)
	b := newBench(t, nil)
	b.connected(a)
	c, err := b.clusters.Client(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "p"}, &corev1.Pod{}); err != nil {
		t.Fatal(err)
	}
	a.set(func(a *api) {
		if a.discovered != 0 {
			t.Errorf("a Pod was read after %d calls to discovery", a.discovered)
		}
	})
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"})
	err = c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, other)
	var missing *apimeta.NoKindMatchError
	if !apimeta.IsNoMatchError(err) && !errors.As(err, &missing) {
		t.Errorf("a kind that there is not: %v", err)
	}
	a.set(func(a *api) {
		if a.discovered == 0 {
			t.Error("the cluster was not asked about a kind that not all have")
		}
	})
}
