package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/test/testkit"
)

var key = client.ObjectKey{Namespace: "ns", Name: "md"}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, kind := range []string{"HostTemplate", "ConfigTemplate"} {
		gvk := schema.GroupVersionKind{Group: "x", Version: "v1", Kind: kind}
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	return s
}

// cluster is a management cluster with the objects, the Cluster and the templates.
func cluster(objects ...client.Object) *fake.ClientBuilder {
	b := fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&clusterv1.MachineDeployment{}, &clusterv1.MachineSet{}, &clusterv1.Machine{})
	testkit.WithIndexes(b, func(i client.FieldIndexer) error {
		return errors.Join(watches.IndexByCluster(i, Name, &clusterv1.MachineDeployment{}), referrers().Index(i, Name))
	})
	for _, i := range indexes() {
		b.WithIndex(i.kind, i.field, i.value)
	}
	for _, ref := range references(newDeployment()) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: ref.Kind})
		u.SetNamespace("ns")
		u.SetName(ref.Name)
		b.WithObjects(u)
	}
	for _, name := range []string{"hosttemplates.x", "configtemplates.x"} {
		b.WithObjects(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}})
	}
	return b.WithObjects(newCluster()).WithObjects(objects...)
}

// world is a management cluster that a reconciler runs against, and MachineSets that do as they are told.
type world struct {
	t *testing.T
	client.WithWatch
	r *reconciler.Reconciler[*clusterv1.MachineDeployment, snapshot]
}

func newWorld(t *testing.T, c client.WithWatch) world {
	ctl := &controller{client: c, live: c, refs: kube.NewReferences(c, nil), now: now}
	r := &reconciler.Reconciler[*clusterv1.MachineDeployment, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: now}
	ctl.writer = r.Writer
	return world{t, c, r}
}

func (w world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// settle reconciles, and lets MachineSets follow, until nothing is written any more.
func (w world) settle() {
	w.t.Helper()
	quiet := 0
	for range 80 {
		before := w.fingerprint()
		_, err := w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict {
			w.t.Fatal(err)
		}
		if failed := w.follow(); failed || err != nil || w.fingerprint() != before {
			quiet = 0
		} else if quiet++; quiet == 2 {
			return
		}
	}
	w.t.Fatal("does not settle")
}

func (w world) sets() []clusterv1.MachineSet {
	list := &clusterv1.MachineSetList{}
	w.must(w.List(context.Background(), list))
	return list.Items
}

func (w world) fingerprint() string {
	d := &clusterv1.MachineDeployment{}
	w.must(client.IgnoreNotFound(w.Get(context.Background(), key, d)))
	out := d.ResourceVersion
	for _, set := range w.sets() {
		out += " " + set.Name + set.ResourceVersion
	}
	return out
}

// follow gives every MachineSet as many available Machines as it wants, and lets go of deleted ones. It reports whether a
// write failed.
func (w world) follow() bool {
	ctx := context.Background()
	var errs []error
	for _, set := range w.sets() {
		if set.UID == "" { // the fake client gives none
			set.UID = types.UID(set.Name)
			errs = append(errs, w.Update(ctx, &set))
			continue
		}
		if !set.DeletionTimestamp.IsZero() {
			errs = append(errs, w.DeleteAllOf(ctx, &clusterv1.Machine{}, client.InNamespace("ns"), client.MatchingLabels{clusterv1.MachineSetNameLabel: set.Name}))
			set.Finalizers = nil
			errs = append(errs, w.Update(ctx, &set))
			continue
		}
		list := &clusterv1.MachineList{}
		w.must(w.List(ctx, list, client.MatchingLabels{clusterv1.MachineSetNameLabel: set.Name}))
		taken := map[string]bool{}
		for _, m := range list.Items {
			taken[m.Name] = true
		}
		for n, missing := 0, int(replicasOf(&set))-len(list.Items); missing > 0; n++ {
			if m := machine(&set, fmt.Sprintf("%s-%d", set.Name, n)); !taken[m.Name] {
				errs = append(errs, w.Create(ctx, &m))
				missing--
			}
		}
		for n := len(list.Items); n > int(replicasOf(&set)); n-- {
			errs = append(errs, w.Delete(ctx, &list.Items[n-1]))
		}
		if set.Status.ObservedGeneration != set.Generation || ptr.Deref(set.Status.Replicas, 0) != replicasOf(&set) {
			set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, set.Spec.Replicas
			errs = append(errs, w.SubResource("status").Patch(ctx, &set, client.Merge))
		}
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, testkit.ErrInjected) {
			w.t.Fatal(err)
		}
	}
	return errors.Join(errs...) != nil
}

// raw is a deployment as a user creates it.
func raw() *clusterv1.MachineDeployment {
	d := newDeployment()
	d.Finalizers, d.OwnerReferences, d.Labels, d.Status = nil, nil, nil, clusterv1.MachineDeploymentStatus{}
	return d
}

func (w world) deployment() *clusterv1.MachineDeployment {
	d := &clusterv1.MachineDeployment{}
	w.must(w.Get(context.Background(), key, d))
	return d
}

// change is what a user does.
func (w world) change(f func(*clusterv1.MachineDeployment)) {
	w.t.Helper()
	for {
		d := w.deployment()
		f(d)
		if err := w.Update(context.Background(), d); !errors.Is(err, testkit.ErrInjected) {
			w.must(err)
			return
		}
	}
}

func (w world) complete(version string) {
	w.t.Helper()
	d, sets := w.deployment(), w.sets()
	if len(sets) != 1 || replicasOf(&sets[0]) != 3 || sets[0].Spec.Template.Spec.Version != version || !controls(d, &sets[0]) {
		w.t.Fatalf("MachineSets %+v", sets)
	}
	if d.Annotations[clusterv1.RevisionAnnotation] != sets[0].Annotations[clusterv1.RevisionAnnotation] ||
		ptr.Deref(d.Status.AvailableReplicas, 0) != 3 || d.Status.Phase != "Running" || len(d.Finalizers) != 1 || len(d.OwnerReferences) != 1 {
		w.t.Errorf("deployment %+v %+v", d.ObjectMeta, d.Status)
	}
	for _, ref := range references(d) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: ref.Kind})
		w.must(w.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: ref.Name}, u))
		if owners := u.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "c-uid" {
			w.t.Errorf("DP-19: owners of %s %v", ref.Kind, owners)
		}
	}
}

func TestEveryWriteFailsOnce(t *testing.T) { // DP-01, DP-02, DP-04, DP-06, DP-19, DP-20
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return cluster(raw()) }, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		w.complete("v1.36.3")
		w.change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.4" })
		w.settle()
		w.complete("v1.36.4")
	})
}

func TestDeletionWhileWritesFail(t *testing.T) { // DP-01
	s := settled(func(s *snapshot) { deleted(s.Deployment) })
	testkit.FailEachWrite(t, func() *fake.ClientBuilder { return cluster(s.Deployment.DeepCopy(), s.Sets[0].DeepCopy()) }, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		if err := w.Get(context.Background(), key, &clusterv1.MachineDeployment{}); !apierrors.IsNotFound(err) || len(w.sets()) > 0 {
			t.Errorf("left: %v, %v", err, w.sets())
		}
	})
}

func TestAdoptionWhileWritesFail(t *testing.T) { // OR-01
	s := settled(restored)
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		b := cluster(s.Deployment.DeepCopy(), s.Sets[0].DeepCopy())
		for _, m := range s.Machines["md-1"] {
			b.WithObjects(m.DeepCopy())
		}
		return b
	}, func(t *testing.T, c client.WithWatch) {
		w := newWorld(t, c)
		w.settle()
		if sets := w.sets(); len(sets) != 1 || sets[0].Name != "md-1" || !controls(w.deployment(), &sets[0]) || len(sets[0].Finalizers) != 1 {
			t.Errorf("%+v", sets)
		}
	})
}

// Over two MachineSets, whichever of the writes fails: in the end there are as many replicas as without a failure.
func TestScalingWhilePausedAndWritesFail(t *testing.T) { // DP-11
	s := settled(func(s *snapshot) {
		upgrade(s)
		withSet(s, setPlan{name: "md-2", replicas: 2, revision: 2, current: true}, 2)
		s.Sets[0].Spec.Replicas, s.Deployment.Spec.Replicas = new(int32(6)), new(int32(8))
		for n := 3; n < 6; n++ {
			s.Machines["md-1"] = append(s.Machines["md-1"], machine(&s.Sets[0], fmt.Sprintf("md-1-%d", n)))
		}
		for i := range s.Sets {
			s.Sets[i].Annotations[clusterv1.DesiredReplicasAnnotation] = "8"
			s.Sets[i].Status.Replicas = s.Sets[i].Spec.Replicas
		}
		s.Deployment.Annotations[clusterv1.RevisionAnnotation] = "2"
		s.Deployment.Spec.Paused = new(true)
	})
	for reason, tc := range map[string]struct {
		replicas int32
		want     map[string]int32
	}{
		"down to the deployment's replicas and maxSurge": {3, map[string]int32{"md-1": 3, "md-2": 1}},
		"up to the deployment's replicas and maxSurge":   {15, map[string]int32{"md-1": 12, "md-2": 4}},
	} {
		t.Run(reason, func(t *testing.T) {
			testkit.FailEachWrite(t, func() *fake.ClientBuilder {
				b := cluster(s.Deployment.DeepCopy(), s.Sets[0].DeepCopy(), s.Sets[1].DeepCopy())
				for _, m := range machinesOf(s) {
					b.WithObjects(m.DeepCopy())
				}
				return b
			}, func(t *testing.T, c client.WithWatch) {
				w := newWorld(t, c)
				w.change(func(d *clusterv1.MachineDeployment) { d.Spec.Replicas = &tc.replicas })
				w.settle()
				got := map[string]int32{}
				for _, set := range w.sets() {
					got[set.Name] = replicasOf(&set)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("replicas (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// What the deployment does not say any more is taken away again; what others say stays.
func TestHandingDown(t *testing.T) { // DP-05, DP-16
	w := newWorld(t, cluster(raw()).WithReturnManagedFields().Build())
	w.settle()
	set := w.sets()[0]
	set.Annotations["foreign"] = "stays"
	w.must(w.Update(context.Background(), &set))
	w.settle()
	before := w.fingerprint()
	w.settle()
	if after := w.fingerprint(); before != after {
		t.Errorf("written without a change: %s, %s", before, after)
	}
	w.change(func(d *clusterv1.MachineDeployment) {
		d.Annotations = map[string]string{"new": "1", clusterv1.RevisionAnnotation: "1"}
		d.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder
	})
	w.settle()
	sets := w.sets()
	got := map[string]string{}
	for _, key := range []string{"team", "new", "foreign", clusterv1.RevisionAnnotation} {
		if value, ok := sets[0].Annotations[key]; ok {
			got[key] = value
		}
	}
	want := map[string]string{"new": "1", "foreign": "stays", clusterv1.RevisionAnnotation: "1"}
	if diff := cmp.Diff(want, got); diff != "" || len(sets) != 1 || sets[0].Spec.Deletion.Order != clusterv1.OldestMachineSetDeletionOrder {
		t.Errorf("MachineSets %+v (-want +got):\n%s", sets, diff)
	}
}

func TestWhoIsWoken(t *testing.T) { // OR-01, DP-19
	s := settled()
	orphan, strange, owned := s.Sets[0].DeepCopy(), s.Sets[0].DeepCopy(), s.Sets[0].DeepCopy()
	orphan.OwnerReferences, strange.OwnerReferences[0].Kind = nil, "Cluster"
	other := newDeployment()
	other.Name, other.Spec.Selector.MatchLabels = "other", map[string]string{"other": ""}
	other.Spec.Template.Spec.InfrastructureRef.Name = "j"
	c := &controller{client: cluster(s.Deployment, other).Build()}
	for name, tc := range map[string]struct {
		set  *clusterv1.MachineSet
		want int
	}{"its owner": {owned, 1}, "who may adopt it": {orphan, 1}, "nobody": {strange, 0}} {
		if got := c.ofSet(context.Background(), tc.set); len(got) != tc.want || tc.want == 1 && got[0].Name != "md" {
			t.Errorf("%s: %v", name, got)
		}
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "HostTemplate"})
	template.SetNamespace("ns")
	template.SetName("i")
	if got := referrers().Requests(context.Background(), c.client, Name, template); len(got) != 1 || got[0].Name != "md" {
		t.Errorf("a template wakes %v", got)
	}
}
