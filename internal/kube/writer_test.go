package kube_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
)

func scheme(t testing.TB) *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

type counter struct{ writes int }

// newClient returns a client over objs that counts what is sent.
func newClient(t testing.TB, objs ...client.Object) (client.Client, *counter) {
	n := &counter{}
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objs...).WithStatusSubresource(&clusterv1.Cluster{}).
		WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			n.writes++
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			n.writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	return c, n
}

func cluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "1"}}
}

func status(phase string, conditions ...metav1.Condition) clusterv1.ClusterStatus {
	return clusterv1.ClusterStatus{Phase: phase, Conditions: conditions}
}

func withCondition(t, reason string) metav1.Condition {
	return metav1.Condition{Type: t, Status: "True", Reason: reason, LastTransitionTime: metav1.Unix(1e9, 0)}
}

// TestAnswersAreMetadata: nothing but the metadata of what was written is asked for.
func TestAnswersAreMetadata(t *testing.T) {
	var asked []string
	heard := func(o client.Object) {
		asked = append(asked, fmt.Sprintf("%T %s", o, o.GetObjectKind().GroupVersionKind().Kind))
	}
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(cluster()).WithStatusSubresource(&clusterv1.Cluster{}).
		WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			heard(o)
			return c.SubResource(sub).Patch(ctx, o, patch, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			heard(o)
			return c.Patch(ctx, o, patch, opts...)
		},
	}).Build()
	w, want := kube.NewWriter(c, "test"), &unstructured.Unstructured{}
	want.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	want.SetNamespace("ns")
	want.SetName("c")
	want.SetLabels(map[string]string{"a": "b"})
	for _, write := range []func(live client.Object) error{
		func(live client.Object) error { return w.Apply(t.Context(), live, want) },
		func(live client.Object) error { return w.ApplyStatus(t.Context(), live, status("Pending")) },
		func(live client.Object) error {
			return w.Patch(t.Context(), live, func(o client.Object) { o.SetFinalizers([]string{"example.com/f"}) })
		},
	} {
		live := &clusterv1.Cluster{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster()), live); err != nil {
			t.Fatal(err)
		}
		if err := write(live); err != nil {
			t.Fatal(err)
		}
		if !w.Writes().Stale(live) {
			t.Error("what the answer says was not recorded")
		}
	}
	const metadata = "*v1.PartialObjectMetadata Cluster"
	if diff := cmp.Diff([]string{metadata, metadata, metadata}, asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want.GetUID() != "" {
		t.Error("what was to be applied was changed")
	}
}

func TestApplyStatusWritesOncePerChange(t *testing.T) { // CO-03
	ctx := context.Background()
	c, sent := newClient(t, cluster())
	w := kube.NewWriter(c, "cluster")
	steps := []struct {
		reason string
		status clusterv1.ClusterStatus
		writes int
	}{
		{"first report", status("Pending", withCondition("A", "x"), withCondition("B", "x")), 1},
		{"nothing changed", status("Pending", withCondition("A", "x"), withCondition("B", "x")), 1},
		{"a value changed", status("Provisioned", withCondition("A", "x"), withCondition("B", "x")), 2},
		{"a condition is not said any more", status("Provisioned", withCondition("A", "x")), 3},
		{"a field is not said any more", status("", withCondition("A", "x")), 4},
		{"nothing changed again", status("", withCondition("A", "x")), 4},
	}
	for _, step := range steps {
		live := &clusterv1.Cluster{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(cluster()), live); err != nil {
			t.Fatal(err)
		}
		if err := w.ApplyStatus(ctx, live, step.status); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if sent.writes != step.writes {
			t.Errorf("%s: %d writes, want %d", step.reason, sent.writes, step.writes)
		}
		after := &clusterv1.Cluster{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(cluster()), after); err != nil {
			t.Fatal(err)
		}
		if after.Status.Phase != step.status.Phase || len(after.Status.Conditions) != len(step.status.Conditions) {
			t.Errorf("%s: status is %+v", step.reason, after.Status)
		}
	}
}

func TestPatchNeverOverwrites(t *testing.T) { // MA-18, CO-03
	ctx := context.Background()
	c, sent := newClient(t, cluster())
	w := kube.NewWriter(c, "cluster")
	read := &clusterv1.Cluster{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(cluster()), read); err != nil {
		t.Fatal(err)
	}
	label := func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }
	if err := w.Patch(ctx, read, func(client.Object) {}); err != nil || sent.writes != 0 {
		t.Errorf("no change, no write: %d, %v", sent.writes, err)
	}
	if err := w.Patch(ctx, read, label); err != nil {
		t.Fatal(err)
	}
	err := w.Patch(ctx, read, func(o client.Object) { o.SetLabels(map[string]string{"c": "d"}) })
	if fault.KindOf(err) != fault.Conflict {
		t.Errorf("a write on an older read must conflict, got %v", err)
	}
	if !w.Writes().Stale(read) {
		t.Error("what was read before our own write is stale")
	}
}

func TestCreateMayBeRepeated(t *testing.T) {
	ctx := context.Background()
	c, _ := newClient(t)
	w := kube.NewWriter(c, "cluster")
	yes := true
	secret := func(owner string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "X", Name: owner, UID: "uid-" + "a", Controller: &yes}}}}
	}
	other := secret("b")
	other.OwnerReferences[0].UID = "uid-b"
	for i, step := range []struct {
		obj   *corev1.Secret
		kind  fault.Kind
		fails bool
	}{{secret("a"), 0, false}, {secret("a"), 0, false}, {other, fault.Invalid, true}} {
		err := w.Create(ctx, step.obj)
		if (err != nil) != step.fails || (err != nil && fault.KindOf(err) != step.kind) {
			t.Errorf("create %d: %v", i, err)
		}
	}
}

func TestDelete(t *testing.T) {
	// The Secret has a finalizer: it does not go, and the reader does not see that it is going.
	protected := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", Finalizers: []string{"example.org/keep"}}}
	read := func(t *testing.T, c client.Client) *corev1.Secret {
		t.Helper()
		out := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(protected), out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	changed := func(t *testing.T, c client.Client) {
		t.Helper()
		now := read(t, c)
		now.Labels = map[string]string{"changed": "meanwhile"}
		if err := c.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	label := func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) }
	conditional, anyway := (*kube.Writer).Delete, (*kube.Writer).DeleteAnyway
	for name, tc := range map[string]struct {
		reason string
		delete func(*kube.Writer, context.Context, client.Object) error
		before func(*testing.T, client.Client, *kube.Writer, *corev1.Secret)
		times  int
		want   fault.Kind
		sent   int
	}{
		"as read":              {"", conditional, nil, 1, 0, 1},
		"twice":                {"the API server has said that it goes", conditional, nil, 2, 0, 1},
		"twice, anyway":        {"", anyway, nil, 2, 0, 1},
		"changed meanwhile":    {"what was decided was of another state", conditional, func(t *testing.T, c client.Client, _ *kube.Writer, _ *corev1.Secret) { changed(t, c) }, 1, fault.Conflict, 1},
		"changed, tried again": {"a delete that failed is not maxRemembered", conditional, func(t *testing.T, c client.Client, _ *kube.Writer, _ *corev1.Secret) { changed(t, c) }, 2, fault.Conflict, 2},
		"changed, anyway":      {"its owner goes whatever it says", anyway, func(t *testing.T, c client.Client, _ *kube.Writer, _ *corev1.Secret) { changed(t, c) }, 1, 0, 1},
		"changed by this writer": {"the API server would refuse", conditional, func(t *testing.T, _ client.Client, w *kube.Writer, o *corev1.Secret) {
			if err := w.Patch(t.Context(), o, label); err != nil {
				t.Fatal(err)
			}
		}, 1, fault.Conflict, 0},
		"going": {"", anyway, func(_ *testing.T, _ client.Client, _ *kube.Writer, o *corev1.Secret) {
			o.DeletionTimestamp = new(metav1.Now())
		}, 1, 0, 0},
		"gone": {"", anyway, func(_ *testing.T, _ client.Client, _ *kube.Writer, o *corev1.Secret) { o.Name = "gone" }, 1, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			sent := 0
			c := fake.NewClientBuilder().WithObjects(protected.DeepCopy()).WithInterceptorFuncs(interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					sent++
					if only := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions; only == nil || *only.UID != protected.UID {
						t.Errorf("another object of its name would be deleted: %v", only)
					}
					return c.Delete(ctx, o, opts...)
				},
			}).Build()
			w, o := kube.NewWriter(c, "test"), read(t, c)
			if tc.before != nil {
				tc.before(t, c, w, o)
			}
			for range tc.times {
				if err := tc.delete(w, t.Context(), o.DeepCopy()); (err != nil) != (tc.want != 0) || err != nil && fault.KindOf(err) != tc.want {
					t.Errorf("%s: %v", tc.reason, err)
				}
			}
			if sent != tc.sent {
				t.Errorf("%s: %d deletes sent, want %d", tc.reason, sent, tc.sent)
			}
		})
	}
}

// TestPatchOfAStaleObject: what the API server would refuse is not sent.
func TestPatchOfAStaleObject(t *testing.T) {
	sent := 0
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u"}}
	c := fake.NewClientBuilder().WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			sent++
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	w := kube.NewWriter(c, "test")
	label := func(value string) func(client.Object) {
		return func(o client.Object) { o.SetLabels(map[string]string{"a": value}) }
	}
	if err := w.Patch(t.Context(), secret, label("1")); err != nil {
		t.Fatal(err)
	}
	if err := w.Patch(t.Context(), secret, label("2")); fault.KindOf(err) != fault.Conflict || sent != 1 {
		t.Errorf("%v, %d patches sent", err, sent)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	if err := w.Patch(t.Context(), secret, label("2")); err != nil || sent != 2 {
		t.Errorf("once it was read again: %v, %d patches sent", err, sent)
	}

	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	all, other := &kube.Writes{}, kube.NewWriter(c, "other")
	w.ShareWritesWith(all)
	other.ShareWritesWith(all)
	if err := other.Patch(t.Context(), secret, label("3")); err != nil || sent != 3 {
		t.Fatalf("%v, %d patches sent", err, sent)
	}
	if err := w.WithController("test-too").Patch(t.Context(), secret, label("4")); fault.KindOf(err) != fault.Conflict || sent != 3 {
		t.Errorf("what another controller wrote meanwhile: %v, %d patches sent", err, sent)
	}
}

// TestWriterOfAnotherCluster: another cluster chooses the UIDs and versions of its objects, so writes and deletions there say
// nothing about an object of the management cluster, nor about the same object after a restore.
func TestWriterOfAnotherCluster(t *testing.T) {
	node := func() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}} }
	management := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", ResourceVersion: "5"}}
	deletions := 0
	workload := func() client.Client {
		return fake.NewClientBuilder().WithObjects(node()).WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				deletions++
				return c.Delete(ctx, o, opts...)
			},
		}).Build()
	}
	w, all := kube.NewWriter(fake.NewClientBuilder().Build(), "test"), &kube.Writes{}
	w.ShareWritesWith(all)
	c := workload()
	have := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, have); err != nil {
		t.Fatal(err)
	}
	if err := w.WithClient(c).Patch(t.Context(), have, func(o client.Object) { o.SetLabels(map[string]string{"a": "1"}) }); err != nil {
		t.Fatal(err)
	}
	if w.Writes().Stale(management) || all.Stale(management) {
		t.Error("a write in a workload cluster makes an object of the management cluster stale")
	}
	for _, c := range []client.Client{workload(), workload()} {
		if err := c.Get(t.Context(), client.ObjectKey{Name: "n"}, have); err != nil {
			t.Fatal(err)
		}
		if err := w.WithClient(c).DeleteAnyway(t.Context(), have); err != nil {
			t.Fatal(err)
		}
	}
	if deletions != 2 {
		t.Errorf("%d deletions were sent: an object that a restore brought back must be deleted again", deletions)
	}
}

// Managed fields are half of an object; nothing that is compared or sent has them.
func TestPatchSendsNoManagedFields(t *testing.T) {
	c := cluster()
	var sent []byte
	fakes := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(c).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			var err error
			if sent, err = patch.Data(obj); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	live := &clusterv1.Cluster{}
	if err := fakes.Get(t.Context(), client.ObjectKeyFromObject(c), live); err != nil {
		t.Fatal(err)
	}
	live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "slipway-test", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1"}}
	before := live.DeepCopy()
	err := kube.NewWriter(fakes, "test").Patch(t.Context(), live, func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) })
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"metadata":{"labels":{"a":"b"},"resourceVersion":"` + before.ResourceVersion + `"}}`; string(sent) != want {
		t.Errorf("want %s, got %s", want, sent)
	}
	if !equality.Semantic.DeepEqual(before, live) {
		t.Error("the object that was read was changed")
	}
}

// TestPatchOwned: what others write meanwhile is kept and is no conflict; another object of that name is.
func TestPatchOwned(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u"}}
	var sent []string
	c := fake.NewClientBuilder().WithObjects(secret).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			data, err := p.Data(o)
			sent = append(sent, string(data))
			if err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	read := secret.DeepCopy()
	secret.SetLabels(map[string]string{"theirs": "1"})
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w := kube.NewWriter(c, "test")
	annotate := func(o client.Object) { o.SetAnnotations(map[string]string{"ours": "1"}) }
	if err := w.PatchOwned(t.Context(), read, func(client.Object) {}); err != nil || len(sent) > 0 {
		t.Errorf("nothing changes: %v, sent %q", err, sent)
	}
	if err := w.PatchOwned(t.Context(), read, annotate); err != nil {
		t.Fatal(err)
	}
	if want := []string{`{"metadata":{"annotations":{"ours":"1"},"uid":"u"}}`}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	if err := w.PatchOwned(t.Context(), read, annotate); fault.KindOf(err) != fault.Conflict || len(sent) != 1 {
		t.Errorf("what this writer wrote itself is not there yet: %v, sent %q", err, sent)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	if secret.Labels["theirs"] != "1" || secret.Annotations["ours"] != "1" {
		t.Errorf("labels %v, annotations %v", secret.Labels, secret.Annotations)
	}
}
