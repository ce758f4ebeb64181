package kube_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestFollow(t *testing.T) { // CL-03, CL-05, CT-04
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
		crd("foos.i", map[string]string{"cluster.x-k8s.io/v1beta2": "v1_v2"}), crd("bars.i", nil), crd("foonetworks.i", nil), crd("elsewheres.other.io", nil), crd("elsewheres.third.io", nil)).Build()
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
		"misspelt":       {"the provider is installed, and has no such kind", cluster(), "FooNetwrk", "x", false, "is not installed; did you mean the kind of CRD foonetworks.i? If not, install the provider it belongs to (CRD foonetwrks.i)"},
		"not similar":    {"three letters are another word", cluster(), "FooNet", "x", false, "is not installed; install the provider"},
		"of other group": {"the group is what is wrong", cluster(), "Elsewhere", "x", false, "is not installed; there is one of group other.io: refer to that, or install"},
		"the book's":     {"who comes from its quick start has the page that says what is different", cluster(), "DockerCluster", "x", false, "(CRD dockerclusters.infrastructure.cluster.x-k8s.io), or use the Local kinds"},
		"nothing left":   {"the kind went before the object that referred to it", deleting, "Baz", "x", false, ""},
		"there, goes on": {"the second look needs no second watch", cluster(), "Foo", "there", true, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := clusterv1.ContractVersionedObjectReference{Kind: tc.kind, Name: tc.name}
			if tc.kind != "" {
				ref.APIGroup = "i"
			}
			if tc.kind == "DockerCluster" {
				ref.APIGroup = "infrastructure.cluster.x-k8s.io"
			}
			o, err := refs.GetReferenced(context.Background(), tc.from, ref)
			if err != nil || (o.Presence() == contract.Found) != tc.found || !strings.Contains(o.Problem, tc.problem) || (o.Problem == "") != (tc.problem == "") {
				t.Errorf("%s: object %v, problem %q, error %v", tc.reason, o.Unstructured, o.Problem, err)
			}
			if tc.found && o.GetName() != "there" {
				t.Errorf("%s: it is %s", tc.reason, o.GetName())
			}
		})
	}
	if watched != 1 {
		t.Errorf("kind Foo was watched %d times", watched)
	}
}

// indexer makes indexes, and notes how often.
type indexer struct {
	client.Client
	made int
	err  error
}

func (i *indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	if i.made++; i.err != nil {
		return i.err
	}
	return fake.AddIndex(i.Client, o, field, keys)
}

func TestListByIndex(t *testing.T) {
	s := scheme(t)
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v2", "v3"} {
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "i", Version: version, Kind: "Foo"}, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "i", Version: version, Kind: "FooList"}, &unstructured.UnstructuredList{})
	}
	foo := func(name string, labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "i/v2", "kind": "Foo",
			"metadata": map[string]any{"namespace": "ns", "name": name, "labels": labels}}}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "foos.i", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v2"}}}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(crd,
		foo("mine", map[string]any{"set": "s", "cluster": "c"}), foo("another set's", map[string]any{"set": "t", "cluster": "c"}),
		foo("another cluster's", map[string]any{"set": "s", "cluster": "d"}), foo("nobody's", nil)).Build()
	list := func(refs *kube.References, labels map[string]string) (names []string) {
		t.Helper()
		all, err := refs.List(context.Background(), "i", "Foo", "ns", labels)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			names = append(names, o.GetName())
		}
		return names
	}
	want := []string{"mine"}
	labels := map[string]string{"set": "s", "cluster": "c"}
	if diff := cmp.Diff(want, list(kube.NewReferences(c, nil), labels)); diff != "" {
		t.Errorf("without an index (-want +got):\n%s", diff)
	}
	index := &indexer{Client: c, err: errors.New("not now")}
	watched := 0
	refs := kube.NewReferences(c, func(*unstructured.Unstructured) error { watched++; return nil }).IndexedBy(index, "test", "set")
	if _, err := refs.List(context.Background(), "i", "Foo", "ns", labels); err == nil || !strings.Contains(err.Error(), "indexing Foo.i: not now") {
		t.Errorf("an index that cannot be made: %v", err)
	}
	index.err = nil
	for range 2 {
		if diff := cmp.Diff(want, list(refs, labels)); diff != "" {
			t.Errorf("by the index (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff([]string{"another set's", "mine"}, list(refs, map[string]string{"cluster": "c"})); diff != "" {
		t.Errorf("by another label (-want +got):\n%s", diff)
	}
	crd.Labels["cluster.x-k8s.io/v1beta2"] = "v2_v3"
	if err := c.Update(context.Background(), crd); err != nil {
		t.Fatal(err)
	}
	list(refs, labels) // fails where there is no index of this version
	if index.made != 3 || watched != 2 {
		t.Errorf("the index was made %d times, want one that failed, and one for each version; %d watches, want 2", index.made, watched)
	}
}

// An object is read in the API version that is asked for, with the contract that this version fulfils.
func TestGetAs(t *testing.T) { // TP-35
	s := scheme(t)
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v1", "v2"} {
		s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "i", Version: version, Kind: "Foo"}, &unstructured.Unstructured{})
	}
	older := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "i/v1", "kind": "Foo", "metadata": map[string]any{"namespace": "ns", "name": "there"}}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "foos.i", Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1", "cluster.x-k8s.io/v1beta2": "v2"},
	}}
	refs := kube.NewReferences(fake.NewClientBuilder().WithScheme(s).WithObjects(crd, older).Build(), nil)
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "Foo", Name: "there"}
	o, err := refs.GetAs(t.Context(), "v1", ref, "ns")
	if err != nil || o.Contract != contract.V1Beta1 || o.GetAPIVersion() != "i/v1" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := refs.GetAs(t.Context(), "v3", ref, "ns"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a version of no contract: %v", err)
	}
}
