package describe_test

import (
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/operate/describe"
)

// A set that waits for other clusters is no row of a cluster that has all of it.
func TestSetsThatWaitForOthers(t *testing.T) { // CX-09, RS-06
	resource := func(name string) addonsv1.ResourceRef { return addonsv1.ResourceRef{Kind: "ConfigMap", Name: name} }
	binding := func(applied ...bool) []addonsv1.ResourceBinding {
		var out []addonsv1.ResourceBinding
		for i, yes := range applied {
			out = append(out, addonsv1.ResourceBinding{ResourceRef: resource([]string{"a", "b"}[i]), Applied: &yes})
		}
		return out
	}
	for name, tc := range map[string]struct {
		resources []addonsv1.ResourceBinding
		shown     bool
	}{
		"all":      {binding(true, true), false},
		"one less": {binding(true), true},
		"failed":   {binding(true, false), true},
		"none":     {nil, true},
	} {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, addonsv1.AddToScheme} {
			if err := add(scheme); err != nil {
				t.Fatal(err)
			}
		}
		at := metav1.ObjectMeta{Namespace: "default", Name: "demo"}
		cluster := &clusterv1.Cluster{ObjectMeta: at}
		cluster.Labels = map[string]string{"network": "flannel"}
		set := &addonsv1.ClusterResourceSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "flannel"}}
		set.Spec.ClusterSelector.MatchLabels = cluster.Labels
		set.Spec.Resources = []addonsv1.ResourceRef{resource("a"), resource("b")}
		set.Status.Conditions = []metav1.Condition{{Type: "ResourcesApplied", Status: metav1.ConditionFalse, Reason: "NotApplied", Message: "* Some Clusters are paused"}}
		objects := []client.Object{cluster, set}
		if tc.resources != nil {
			objects = append(objects, &addonsv1.ClusterResourceSetBinding{ObjectMeta: at, Spec: addonsv1.ClusterResourceSetBindingSpec{
				Bindings: []addonsv1.ResourceSetBinding{{ClusterResourceSetName: "flannel", Resources: tc.resources}}}})
		}
		mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{clusterv1.GroupVersion, addonsv1.GroupVersion})
		for kind := range scheme.AllKnownTypes() {
			mapper.Add(kind, apimeta.RESTScopeNamespace)
		}
		c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).Build()
		s, err := describe.Read(t.Context(), c, client.ObjectKeyFromObject(cluster), describe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		shown := false
		for _, o := range describe.Build(s, describe.Options{}).Children {
			shown = shown || o.Role == "Addons"
		}
		if shown != tc.shown {
			t.Errorf("%s: shown: %v", name, shown)
		}
	}
}
