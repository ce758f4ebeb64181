package kube_test

import (
	"context"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestLook(t *testing.T) { // CL-03, CL-05, CT-04
	s := scheme(t)
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "i", Version: "v2", Kind: "Foo"}, &unstructured.Unstructured{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "i", Version: "v2", Kind: "FooList"}, &unstructured.UnstructuredList{})
	crd := func(name string, labels map[string]string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	}
	foo := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "i/v2", "kind": "Foo", "metadata": map[string]any{"namespace": "ns", "name": "there"}}}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(foo,
		crd("foos.i", map[string]string{"cluster.x-k8s.io/v1beta2": "v1_v2"}), crd("bars.i", nil)).Build()
	watched := 0
	refs := kube.NewReferences(c, func(*unstructured.Unstructured) error { watched++; return nil })
	now := metav1.Now()
	deleting := cluster()
	deleting.DeletionTimestamp = &now
	cases := map[string]struct {
		reason  string
		from    *clusterv1.Cluster
		kind    string
		name    string
		found   bool
		problem string
	}{
		"there":          {"read in the version that fulfils the contract", cluster(), "Foo", "there", true, ""},
		"not there":      {"no object, no problem", cluster(), "Foo", "other", false, ""},
		"not set":        {"nothing to read", cluster(), "", "", false, ""},
		"no contract":    {"the label is missing", cluster(), "Bar", "x", false, "has no label"},
		"not installed":  {"a person has to install it", cluster(), "Baz", "x", false, "is not installed"},
		"nothing left":   {"the kind went before the object that referred to it", deleting, "Baz", "x", false, ""},
		"there, goes on": {"the second look needs no second watch", cluster(), "Foo", "there", true, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := clusterv1.ContractVersionedObjectReference{Kind: tc.kind, Name: tc.name}
			if tc.kind != "" {
				ref.APIGroup = "i"
			}
			o, problem, err := refs.Look(context.Background(), tc.from, ref)
			if err != nil || (o.Unstructured != nil) != tc.found || !strings.Contains(problem, tc.problem) || (problem == "") != (tc.problem == "") {
				t.Errorf("%s: object %v, problem %q, error %v", tc.reason, o.Unstructured, problem, err)
			}
			if name := kube.View(o, func(o contract.Object) string { return o.GetName() }); (name != nil) != tc.found || (tc.found && *name != "there") {
				t.Errorf("%s: the view is %v", tc.reason, name)
			}
		})
	}
	if watched != 1 {
		t.Errorf("kind Foo was watched %d times", watched)
	}
}
