package memory

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipwayhq/slipway/internal/manager/crds"
)

var key = client.ObjectKey{Namespace: "ns", Name: "c"}

// judge admits everything, and asks the API, as webhooks do.
type judge struct {
	live    client.Reader
	refuses error
}

func (j judge) Admit(ctx context.Context, _, wanted client.Object, _ bool) (client.Object, error) {
	if err := j.live.Get(ctx, key, &clusterv1.Cluster{}); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return wanted, nil
}

func (j judge) RefuseDeletion(context.Context, client.Object) error { return j.refuses }

func newAPI(t *testing.T, refuses error) (*API, *Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	a := New(Options{
		Scheme: scheme, Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		Kinds:     NewKinds(all, func(*apiextensionsv1.CustomResourceDefinition) string { return "" }),
		Admission: func(live client.Reader) Admission { return judge{live, refuses} },
	})
	return a, a.Client(nil)
}

func newCluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "example.org", Kind: "Net", Name: "n"}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, c client.Client) *clusterv1.Cluster {
	t.Helper()
	out := &clusterv1.Cluster{}
	must(t, c.Get(t.Context(), key, out))
	return out
}

// apply applies labels and, where it is given, a pause.
func apply(ctx context.Context, c client.Client, manager string, force bool, labels map[string]any, paused any) error {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"labels": labels}}}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	if paused != nil {
		u.Object["spec"] = map[string]any{"paused": paused}
	}
	data, err := u.MarshalJSON()
	if err != nil {
		return err
	}
	opts := []client.PatchOption{client.FieldOwner(manager)}
	if force {
		opts = append(opts, client.ForceOwnership)
	}
	return c.Patch(ctx, u, client.RawPatch(types.ApplyPatchType, data), opts...)
}

// What is written is stored as the API server stores it.
func TestWrites(t *testing.T) {
	a, c := newAPI(t, nil)
	created := newCluster()
	created.Status.Phase = "Provisioned"
	must(t, c.Create(t.Context(), created, client.FieldOwner("x")))
	if o := read(t, c); o.Generation != 1 || o.UID == "" || o.CreationTimestamp.IsZero() || o.Status.Phase != "" || len(o.ManagedFields) != 1 {
		t.Errorf("created: %+v", o)
	}
	if err := c.Create(t.Context(), newCluster()); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}

	before := read(t, c)
	changed := before.DeepCopy()
	changed.Status.Phase, changed.Labels = "Provisioned", map[string]string{"a": "b"}
	must(t, c.Status().Patch(t.Context(), changed, client.MergeFrom(before)))
	if o := read(t, c); o.Status.Phase != "Provisioned" || o.Labels != nil || o.Generation != 1 {
		t.Errorf("a write of the status changes the status: %+v", o)
	}
	before = read(t, c)
	changed = before.DeepCopy()
	changed.Spec.Paused, changed.Status.Phase = new(true), "Failed"
	must(t, c.Patch(t.Context(), changed, client.MergeFrom(before)))
	if o := read(t, c); o.Status.Phase != "Provisioned" || o.Generation != 2 || o.Spec.Paused == nil {
		t.Errorf("a write of the object changes all but the status: %+v", o)
	}
	must(t, c.Patch(t.Context(), changed, client.MergeFrom(before), client.DryRunAll))
	if err := c.Patch(t.Context(), before.DeepCopy(), client.MergeFromWithOptions(&clusterv1.Cluster{ObjectMeta: before.ObjectMeta}, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("an old resource version: %v", err)
	}
	version := read(t, c).ResourceVersion
	same := read(t, c)
	must(t, c.Update(t.Context(), same))
	if read(t, c).ResourceVersion != version {
		t.Error("what changes nothing is not stored")
	}
	var seen []string
	for _, e := range a.Events() {
		switch {
		case e.Old == nil:
			seen = append(seen, "create by "+e.By)
		default:
			seen = append(seen, "change of "+e.Subresource)
		}
	}
	if want := []string{"create by x", "change of status", "change of "}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

// Fields have owners.
func TestApply(t *testing.T) {
	_, c := newAPI(t, nil)
	must(t, c.Create(t.Context(), newCluster(), client.FieldOwner("x")))
	must(t, apply(t.Context(), c, "one", false, map[string]any{"a": "1", "b": "1"}, true))
	if err := apply(t.Context(), c, "two", false, map[string]any{"a": "2"}, nil); !apierrors.IsConflict(err) {
		t.Errorf("a field of another manager: %v", err)
	}
	must(t, apply(t.Context(), c, "two", true, map[string]any{"a": "2"}, nil))
	must(t, apply(t.Context(), c, "one", false, map[string]any{}, nil))
	if o := read(t, c); o.Labels["a"] != "2" || o.Labels["b"] != "" || o.Spec.Paused != nil || o.Spec.InfrastructureRef.Name != "n" {
		t.Errorf("what is not applied any more goes, unless another has it: %+v", o)
	}
	version := read(t, c).ResourceVersion
	must(t, apply(t.Context(), c, "two", true, map[string]any{"a": "2"}, nil))
	if read(t, c).ResourceVersion != version {
		t.Error("what is applied again is not stored again")
	}
}

func TestDelete(t *testing.T) {
	_, c := newAPI(t, nil)
	o := newCluster()
	o.Finalizers = []string{"example.org/f"}
	must(t, c.Create(t.Context(), o))
	other := types.UID("other")
	if err := c.Delete(t.Context(), o, client.Preconditions{UID: &other}); !apierrors.IsConflict(err) {
		t.Errorf("the UID of another: %v", err)
	}
	must(t, c.Delete(t.Context(), o))
	if o = read(t, c); o.DeletionTimestamp == nil || o.Generation != 2 {
		t.Errorf("a finalizer holds the object: %+v", o)
	}
	base := o.DeepCopy()
	o.Finalizers = nil
	must(t, c.Patch(t.Context(), o, client.MergeFrom(base)))
	if err := c.Get(t.Context(), key, o); !apierrors.IsNotFound(err) {
		t.Errorf("without its finalizer it is gone: %v", err)
	}
	if err := c.Delete(t.Context(), o); !apierrors.IsNotFound(err) {
		t.Errorf("deleted twice: %v", err)
	}
	_, c = newAPI(t, errors.New("in use"))
	must(t, c.Create(t.Context(), newCluster()))
	if err := c.Delete(t.Context(), newCluster()); err == nil || err.Error() != "in use" {
		t.Errorf("a deletion that is refused: %v", err)
	}
}

// The schema is that of the CRD.
func TestValidation(t *testing.T) {
	_, c := newAPI(t, nil)
	o := newCluster()
	o.Spec.InfrastructureRef.APIGroup = "NOT A GROUP"
	if err := c.Create(t.Context(), o); !apierrors.IsInvalid(err) {
		t.Errorf("a value that the schema refuses: %v", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"unknown": "x", "paused": true}}}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	must(t, c.Create(t.Context(), u))
	if _, found, _ := unstructured.NestedString(u.Object, "spec", "unknown"); found {
		t.Error("what the schema does not know is dropped")
	}
	unknown := &unstructured.Unstructured{}
	unknown.SetAPIVersion("example.org/v1")
	unknown.SetKind("Thing")
	unknown.SetName("x")
	if err := c.Create(t.Context(), unknown); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not installed: %v", err)
	}
}

// Lists select by namespace, label and index, in order.
func TestList(t *testing.T) {
	_, c := newAPI(t, nil)
	must(t, c.IndexField(t.Context(), &clusterv1.Cluster{}, "net", func(o client.Object) []string {
		return []string{o.(*clusterv1.Cluster).Spec.InfrastructureRef.Name}
	}))
	for _, name := range []string{"b", "c", "a"} {
		o := newCluster()
		o.Name, o.Labels, o.Spec.InfrastructureRef.Name = name, map[string]string{"first": name[:1]}, "net-"+name
		must(t, c.Create(t.Context(), o))
	}
	for what, tc := range map[string]struct {
		opts []client.ListOption
		want []string
	}{
		"all":               {nil, []string{"a", "b", "c"}},
		"another namespace": {[]client.ListOption{client.InNamespace("other")}, nil},
		"a label":           {[]client.ListOption{client.MatchingLabels{"first": "b"}}, []string{"b"}},
		"an index":          {[]client.ListOption{client.MatchingFields{"net": "net-c"}}, []string{"c"}},
		"one":               {[]client.ListOption{client.Limit(1)}, []string{"a"}},
	} {
		list := &clusterv1.ClusterList{}
		must(t, c.List(t.Context(), list, tc.opts...))
		var got []string
		for _, o := range list.Items {
			got = append(got, o.Name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
	}
	if err := c.List(t.Context(), &clusterv1.ClusterList{}, client.MatchingFields{"no such": "x"}); err == nil {
		t.Error("an index that does not exist")
	}
}
