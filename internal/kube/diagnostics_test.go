package kube_test

import (
	"context"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/kube"
)

// kinds are a management cluster with kind Foo in versions v1 and v2, where Follow finds out what is wrong with references.
func kinds(t *testing.T, label string, funcs interceptor.Funcs, objects ...client.Object) (*kube.References, client.WithWatch) {
	t.Helper()
	s := scheme(t)
	if err := apiextensionsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	mapper := apimeta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "i", Version: "v2"}})
	for _, version := range []string{"v1", "v2"} {
		gvk := schema.GroupVersionKind{Group: "i", Version: version, Kind: "Foo"}
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		s.AddKnownTypeWithName(gvk.GroupVersion().WithKind("FooList"), &unstructured.UnstructuredList{})
		mapper.Add(gvk, apimeta.RESTScopeNamespace)
	}
	fleet := schema.GroupVersionKind{Group: "i", Version: "v2", Kind: "FooMachineFleet"} // of CRD foofleets.i
	s.AddKnownTypeWithName(fleet, &unstructured.Unstructured{})
	mapper.AddSpecific(fleet, fleet.GroupVersion().WithResource("foofleets"), fleet.GroupVersion().WithResource("foofleet"), apimeta.RESTScopeNamespace)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "foos.i", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": label}}}
	c := fake.NewClientBuilder().WithScheme(s).WithRESTMapper(mapper).WithObjects(append(objects, crd)...).Build()
	return kube.NewReferences(interceptor.NewClient(c, funcs), nil).WithDiagnostics(mapper, c), c
}

func foo(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "i/v2", "kind": "Foo", "metadata": map[string]any{"namespace": "ns", "name": name}}}
}

func TestFollowExplainsKinds(t *testing.T) { // CL-06, CL-12, CT-04
	deleted := cluster()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for name, tc := range map[string]struct {
		reason      string
		label, kind string
		from        *clusterv1.Cluster
		objects     []client.Object
		problem     string
	}{
		"right":               {"", "v2", "Foo", cluster(), nil, ""},
		"wrong case":          {"the plural is that of a kind", "v2", "foo", cluster(), nil, "group i has no kind foo; did you mean Foo?"},
		"wrong case, deleted": {"there never was such an object", "v2", "foo", deleted, nil, ""},
		"not served":          {"the provider has dropped a version", "v9", "Foo", cluster(), nil, "names version v9, which is not served; set it to one of: v1, v2"},
		"newest not served":   {"the last version of the list that is available is used", "v1_v2_v9", "Foo", cluster(), nil, ""},
		"none served":         {"the label has to change", "v8_v9", "Foo", cluster(), nil, "names version v9, which is not served"},
		"not served, left":    {"infrastructure would be left behind", "v9", "Foo", deleted, []client.Object{foo("x")}, "names version v9"},
		"not served, deleted": {"there is no such object in any version", "v9", "Foo", deleted, nil, ""},
		"not installed":       {"", "v2", "Bar", cluster(), nil, "is not installed"},
		"not installed, gone": {"", "v2", "Bar", deleted, nil, ""},
		"wrong name": {"the kind is there, where nobody looks for it", "v2", "FooMachineFleet", cluster(), nil, "kind FooMachineFleet of group i is installed by CRD foofleets.i, " +
			"which must be named foomachinefleets.i to be found: its provider has to set spec.names.plural to foomachinefleets"},
		"wrong name, left":     {"infrastructure would be left behind", "v2", "FooMachineFleet", deleted, []client.Object{fleet("x")}, "which must be named foomachinefleets.i"},
		"wrong name, deleted":  {"there is no such object", "v2", "FooMachineFleet", deleted, nil, ""},
		"another manager's":    {"", "v2", "Foo", cluster(), []client.Object{labelledFoo("theirs")}, "has the label cluster.x-k8s.io/watch-filter=theirs"},
		"of this manager":      {"", "v2", "Foo", cluster(), []client.Object{labelledFoo("mine")}, ""},
		"another's, deleted":   {"it does exist", "v2", "Foo", deleted, []client.Object{labelledFoo("theirs")}, "has the label"},
		"without a label, too": {"who refers to it says whose it is", "v2", "Foo", cluster(), []client.Object{foo("x")}, ""},
	} {
		refs, _ := kinds(t, tc.label, interceptor.Funcs{}, tc.objects...)
		ref := clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: tc.kind, Name: "x"}
		o, err := refs.LimitedTo("mine").GetReferenced(t.Context(), tc.from, ref)
		if err != nil || !strings.Contains(o.Problem, tc.problem) || (o.Problem == "") != (tc.problem == "") {
			t.Errorf("%s: problem %q, error %v, want %q; %s", name, o.Problem, err, tc.problem, tc.reason)
		}
	}
}

func fleet(name string) *unstructured.Unstructured {
	o := foo(name)
	o.SetKind("FooMachineFleet")
	return o
}

func labelledFoo(value string) client.Object {
	o := foo("x")
	o.SetLabels(map[string]string{clusterv1.WatchLabel: value})
	return o
}

// A cache of a kind that the manager may not read is never filled: whoever reads from it would wait for ever.
func TestFollowSaysThatRightsAreMissing(t *testing.T) { // CL-06, CT-03
	reads := 0
	refs, live := kinds(t, "v2", interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if o.GetObjectKind().GroupVersionKind().Kind != "Foo" {
			return c.Get(ctx, key, o, opts...)
		}
		reads++
		<-ctx.Done()
		return apierrors.NewTimeoutError("failed waiting for Informer to sync", 0)
	}})
	granted := false
	refs.WithDiagnostics(live.RESTMapper(), interceptor.NewClient(live, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if granted {
				return c.List(ctx, list, opts...)
			}
			return apierrors.NewForbidden(schema.GroupResource{Group: "i", Resource: "foos"}, "", nil)
		}}))
	ref := clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "Foo", Name: "x"}
	deleted := cluster()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	for what, from := range map[string]*clusterv1.Cluster{"a Cluster": cluster(), "one that is deleted: what may not be read may exist": deleted} {
		o, err := refs.GetReferenced(t.Context(), from, ref)
		if err != nil || !strings.Contains(o.Problem, "no right to list and watch kind Foo of group i; grant it") {
			t.Errorf("%s: %q %v", what, o.Problem, err)
		}
	}
	if reads != 1 {
		t.Errorf("%d reads have waited; the second object of the kind has the answer of the first", reads)
	}
}
