package watches

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipwayhq/slipway/test/testkit"
)

func TestRequestsOfAProviderObject(t *testing.T) { // CL-05
	refs := func(o client.Object) []Reference { return []Reference{o.(*clusterv1.Machine).Spec.InfrastructureRef} }
	also := func(names ...string) func(context.Context, client.Object) []reconcile.Request {
		return func(context.Context, client.Object) []reconcile.Request { return requestsFor(names...) }
	}
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	referring := func(namespace, name, infra string) *clusterv1.Machine {
		m := &clusterv1.Machine{}
		m.Namespace, m.Name = namespace, name
		if infra != "" {
			m.Spec.InfrastructureRef = Reference{APIGroup: "i.example", Kind: "FooMachine", Name: infra}
		}
		return m
	}
	machines := Referrers{New: func() client.Object { return &clusterv1.Machine{} }, NewList: func() client.ObjectList { return &clusterv1.MachineList{} }}
	indexed := machines
	indexed.Refs = refs
	reader := testkit.WithIndexes(fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(referring("ns", "m", "i"), referring("far", "m2", "i"), referring("ns", "other", "x"), referring("ns", "none", "")),
		func(i client.FieldIndexer) error { return indexed.Index(i, "test") }).Build()
	owner := func(group, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: group + "/v1", Kind: kind, Name: "owner"}
	}
	core := clusterv1.GroupVersion.Group
	for name, tc := range map[string]struct {
		reason   string
		kind     string
		owner    metav1.OwnerReference
		referrer Referrers
		want     []reconcile.Request
	}{
		"nobody's yet":           {"nobody waits for a timer", "FooMachine", metav1.OwnerReference{}, Referrers{Refs: refs}, requestsFor("m")},
		"owned":                  {"whatever it is called", "FooMachine", owner(core, "Machine"), Referrers{Refs: refs}, requestsFor("owner")},
		"owned by another kind":  {"", "FooMachine", owner(core, "MachineSet"), Referrers{Refs: refs}, requestsFor("m")},
		"owned by another group": {"", "FooMachine", owner("x.example", "Machine"), Referrers{Refs: refs}, requestsFor("m")},
		"another kind":           {"a name is one of a kind", "BarMachine", metav1.OwnerReference{}, Referrers{Refs: refs}, nil},
		"only owners":            {"without Refs", "FooMachine", owner(core, "Machine"), Referrers{}, requestsFor("owner")},
		"only owners, and none":  {"", "FooMachine", metav1.OwnerReference{}, Referrers{}, nil},
		"also":                   {"whoever owns it", "FooMachine", owner(core, "Machine"), Referrers{Refs: refs, Also: also("p")}, requestsFor("p")},
		"also, nobody in this":   {"its owners are woken", "FooMachine", owner(core, "Machine"), Referrers{Refs: refs, Also: also()}, requestsFor("owner")},
		"also, nobody, no owner": {"", "FooMachine", metav1.OwnerReference{}, Referrers{Refs: refs, Also: also()}, requestsFor("m")},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: "i.example", Version: "v1", Kind: tc.kind})
			u.SetNamespace("ns")
			u.SetName("i")
			if tc.owner.Name != "" {
				u.SetOwnerReferences([]metav1.OwnerReference{tc.owner})
			}
			tc.referrer.New, tc.referrer.NewList = machines.New, machines.NewList
			got := tc.referrer.Requests(t.Context(), reader, "test", u)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: want -, got +:\n%s", tc.reason, diff)
			}
		})
	}
}

func requestsFor(names ...string) (out []reconcile.Request) {
	for _, name := range names {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}})
	}
	return out
}
