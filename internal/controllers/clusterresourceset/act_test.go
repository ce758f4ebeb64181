package clusterresourceset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/test/testkit"
)

// fakeWorkloads are workload clusters behind fake clients, by their names; those that are not there are not connected.
type fakeWorkloads map[string]client.Client

func (w fakeWorkloads) Client(_ context.Context, key client.ObjectKey) (client.Client, error) {
	if c := w[key.Name]; c != nil {
		return c, nil
	}
	return nil, workload.ErrNotConnected
}

func (w fakeWorkloads) Health(key client.ObjectKey) workload.Health {
	return workload.Health{Connected: w[key.Name] != nil}
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

// emptyCluster is a workload cluster with nothing in it, that knows the scope of kinds.
func emptyCluster() *fake.ClientBuilder {
	mapper := apimeta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"ConfigMap", "Secret"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), apimeta.RESTScopeNamespace)
	}
	return fake.NewClientBuilder().WithScheme(newScheme()).WithRESTMapper(mapper)
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "cm-uid"},
		Data: map[string]string{"a": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: applied}\ndata: {said: " + value + "}\n"}}
}

func secret(name string, secretType corev1.SecretType) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "s-uid"}, Type: secretType,
		Data: map[string][]byte{"a": []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: from-secret, namespace: kube-system}\n")}}
}

// world is a set of a ConfigMap and a Secret, and two clusters that it selects.
func world(strategy string) *fake.ClientBuilder {
	s := set(strategy, func(s *addonsv1.ClusterResourceSet) {
		s.Spec.Resources = []addonsv1.ResourceRef{ref("Secret", "s"), ref("ConfigMap", "cm")}
	})
	return fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&addonsv1.ClusterResourceSet{}, &clusterv1.Cluster{}).
		WithObjects(s, cluster("c"), cluster("d"), configMap("cm", "one"), secret("s", addonsv1.ClusterResourceSetSecretType))
}

type harness struct {
	t *testing.T
	client.WithWatch
	ctl *controller
}

func newHarness(t *testing.T, c client.WithWatch) *harness {
	w := fakeWorkloads{}
	for _, name := range []string{"c", "d"} {
		w[name] = emptyCluster().Build()
	}
	return &harness{t: t, WithWatch: c, ctl: &controller{client: c, sources: c, live: c, now: func() time.Time { return now }, workloads: w}}
}

func (h *harness) workload(name string) client.Client { return h.ctl.workloads.(fakeWorkloads)[name] }

func (h *harness) reconcile(name string) error {
	r := &reconciler.Reconciler[*addonsv1.ClusterResourceSet, snapshot]{Controller: h.ctl.definition(), Client: h.WithWatch,
		Writer: kube.NewWriter(h.WithWatch, Name), Now: h.ctl.now}
	h.ctl.writer = r.Writer
	_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}})
	return err
}

// settle reconciles until a pass neither fails nor writes.
func (h *harness) settle(sets ...string) {
	h.t.Helper()
	for quiet, n := 0, 0; quiet < 2; n++ {
		if n == 40 {
			h.t.Fatal("does not settle")
		}
		before := h.fingerprint()
		var err error
		for _, name := range sets {
			err = errors.Join(err, h.reconcile(name))
		}
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict && fault.KindOf(err) != fault.Transient {
			h.t.Fatal(err)
		}
		if quiet++; err != nil || h.fingerprint() != before {
			quiet = 0
		}
	}
}

func (h *harness) fingerprint() string {
	h.t.Helper()
	out := ""
	for _, list := range []client.ObjectList{&addonsv1.ClusterResourceSetList{}, &addonsv1.ClusterResourceSetBindingList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}} {
		h.must(h.List(context.Background(), list))
		switch l := list.(type) {
		case *addonsv1.ClusterResourceSetList:
			for _, o := range l.Items {
				out += o.Name + o.ResourceVersion + " "
			}
		case *addonsv1.ClusterResourceSetBindingList:
			for _, o := range l.Items {
				out += o.Name + o.ResourceVersion + " "
			}
		case *corev1.ConfigMapList:
			for _, o := range l.Items {
				out += o.Name + o.ResourceVersion + " "
			}
		case *corev1.SecretList:
			for _, o := range l.Items {
				out += o.Name + o.ResourceVersion + " "
			}
		}
	}
	return out
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// said is what the applied ConfigMap says in a workload cluster; empty where it does not exist.
func (h *harness) said(cluster string) string {
	h.t.Helper()
	cm := &corev1.ConfigMap{}
	err := h.workload(cluster).Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "applied"}, cm)
	if apierrors.IsNotFound(err) {
		return ""
	}
	h.must(err)
	return cm.Data["said"]
}

// recorded is what the binding of a cluster says of a set.
func (h *harness) recorded(cluster, set string) string {
	h.t.Helper()
	b := &addonsv1.ClusterResourceSetBinding{}
	err := h.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: cluster}, b)
	if apierrors.IsNotFound(err) {
		return "no binding"
	}
	h.must(err)
	entry := entryOf(b, set)
	if entry == nil {
		return "no entry"
	}
	out := ""
	for _, r := range entry.Resources {
		out += fmt.Sprintf("%s %s %t; ", r.Kind, r.Name, *r.Applied)
	}
	return out
}

func (h *harness) expect(what, got, want string) {
	h.t.Helper()
	if got != want {
		h.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// condition is status and reason of ResourcesApplied.
func (h *harness) condition() string {
	h.t.Helper()
	s := &addonsv1.ClusterResourceSet{}
	h.must(h.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "set"}, s))
	for _, c := range s.Status.Conditions {
		if c.Type == addonsv1.ClusterResourceSetResourcesAppliedCondition {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

const both = "Secret s true; ConfigMap cm true; "

func TestEveryWriteFailsOnce(t *testing.T) { // RS-04 to RS-07, OR-01
	for _, strategy := range []string{"ApplyOnce", "Reconcile"} {
		t.Run(strategy, func(t *testing.T) {
			testkit.FailEachWrite(t, func() *fake.ClientBuilder { return world(strategy) }, func(t *testing.T, c client.WithWatch) {
				h := newHarness(t, c)
				h.settle("set")
				for _, name := range []string{"c", "d"} {
					h.expect("applied to "+name, h.said(name), "one")
					h.expect("recorded of "+name, h.recorded(name, "set"), both)
				}
				h.expect("condition", h.condition(), "True Applied")
				for _, o := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &addonsv1.ClusterResourceSetBinding{}} {
					name := map[string]string{"*v1.ConfigMap": "cm", "*v1.Secret": "s", "*v1beta2.ClusterResourceSetBinding": "c"}[fmt.Sprintf("%T", o)]
					h.must(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, o))
					if !ownedBy(o.GetOwnerReferences(), set("")) {
						t.Errorf("%T is not owned: %v", o, o.GetOwnerReferences())
					}
				}
			})
		})
	}
}

func TestDeletionWhileWritesFail(t *testing.T) { // RS-06, RS-08
	testkit.FailEachWrite(t, func() *fake.ClientBuilder {
		going := set("ApplyOnce", func(s *addonsv1.ClusterResourceSet) {
			s.DeletionTimestamp, s.Finalizers = ptr.To(metav1.NewTime(now)), []string{addonsv1.ClusterResourceSetFinalizer}
		})
		shared := binding("d", "h", true)
		shared.Spec.Bindings = append(shared.Spec.Bindings, addonsv1.ResourceSetBinding{ClusterResourceSetName: "other"})
		return fake.NewClientBuilder().WithScheme(newScheme()).WithStatusSubresource(&addonsv1.ClusterResourceSet{}).
			WithObjects(going, cluster("c"), cluster("d"), binding("c", "h", true), shared)
	}, func(t *testing.T, c client.WithWatch) {
		h := newHarness(t, c)
		h.must(h.workload("c").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applied"}, Data: map[string]string{"said": "one"}}))
		h.settle("set")
		h.expect("a binding without entries goes", h.recorded("c", "set"), "no binding")
		h.expect("one with others stays", h.recorded("d", "set"), "no entry")
		h.expect("objects stay", h.said("c"), "one")
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "set"}, &addonsv1.ClusterResourceSet{}); !apierrors.IsNotFound(err) {
			t.Errorf("the set stays: %v", err)
		}
	})
}

func (h *harness) change(value string) {
	h.t.Helper()
	cm := &corev1.ConfigMap{}
	h.must(h.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "cm"}, cm))
	cm.Data = configMap("", value).Data
	h.must(h.Update(context.Background(), cm))
}

func TestApplyOnce(t *testing.T) { // RS-04
	h := newHarness(t, world("ApplyOnce").WithReturnManagedFields().Build())
	h.must(h.workload("c").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applied"}, Data: map[string]string{"said": "mine"}}))
	h.settle("set")
	h.expect("what exists is left alone", h.said("c"), "mine")
	h.expect("and counts as applied", h.recorded("c", "set"), both)
	h.change("two")
	h.must(h.workload("d").DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("default")))
	h.settle("set")
	h.expect("what was applied once is not applied again", h.said("d"), "")
}

func TestReconcile(t *testing.T) { // RS-05
	h := newHarness(t, world("Reconcile").WithReturnManagedFields().Build())
	h.settle("set")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "applied"}}
	h.must(h.workload("c").Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
	cm.Data["own"] = "kept"
	h.must(h.workload("c").Update(t.Context(), cm))
	h.change("two")
	h.settle("set")
	h.expect("a change is applied", h.said("c")+h.said("d"), "twotwo")
	h.must(h.workload("c").Get(t.Context(), client.ObjectKeyFromObject(cm), cm))
	h.expect("what is not said is left alone", cm.Data["own"], "kept")
	h.must(h.workload("c").Delete(t.Context(), cm))
	h.change("three")
	h.settle("set")
	h.expect("what is gone is created", h.said("c"), "three")
}

func TestPartialFailure(t *testing.T) { // RS-07, RS-09
	h := newHarness(t, world("ApplyOnce").WithReturnManagedFields().Build())
	broken := true
	h.ctl.workloads.(fakeWorkloads)["c"] = emptyCluster().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if broken && o.GetName() == "from-secret" {
				return errors.New("quota exceeded")
			}
			return c.Create(ctx, o, opts...)
		}}).Build()
	h.ctl.workloads.(fakeWorkloads)["d"] = nil // not connected
	for range 4 {
		if err := h.reconcile("set"); err != nil && fault.KindOf(err) != fault.Transient {
			t.Fatal(err)
		}
	}
	h.expect("what works is applied", h.said("c"), "one")
	h.expect("and recorded, with what does not", h.recorded("c", "set"), "Secret s false; ConfigMap cm true; ")
	h.expect("condition", h.condition(), "False NotApplied")
	h.expect("a cluster that is away is waited for", h.recorded("d", "set"), "no binding")
	before := h.fingerprint()
	if err := h.reconcile("set"); err == nil || h.fingerprint() != before {
		t.Errorf("the same failure again is no news: %v", err)
	}
	broken = false
	h.ctl.workloads.(fakeWorkloads)["d"] = emptyCluster().Build()
	h.settle("set")
	h.expect("all is applied in the end", h.recorded("c", "set")+h.recorded("d", "set"), both+both)
	h.expect("condition", h.condition(), "True Applied")
}

func TestMissingAndWrongResources(t *testing.T) { // RS-02, RS-07
	c := world("ApplyOnce").WithReturnManagedFields().Build()
	h := newHarness(t, c)
	h.must(c.Delete(t.Context(), secret("s", "")))
	h.settle("set")
	h.expect("the other one is applied", h.recorded("c", "set"), "ConfigMap cm true; ")
	h.expect("condition", h.condition(), "False NotApplied")
	h.must(c.Create(t.Context(), secret("s", corev1.SecretTypeOpaque)))
	h.settle("set")
	h.expect("a Secret of another type is not for workload clusters", h.recorded("c", "set"), "ConfigMap cm true; ")
	h.expect("condition", h.condition(), "False WrongSecretType")
	h.must(c.Delete(t.Context(), secret("s", "")))
	h.must(c.Create(t.Context(), secret("s", addonsv1.ClusterResourceSetSecretType)))
	h.settle("set")
	h.expect("condition", h.condition(), "True Applied")
}

// unseen is a client whose cache has not seen any binding yet.
type unseen struct{ client.WithWatch }

func (u unseen) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*addonsv1.ClusterResourceSetBindingList); ok {
		return nil
	}
	return u.WithWatch.List(ctx, list, opts...)
}

func TestTwoSetsOnOneCluster(t *testing.T) { // RS-06, RS-09
	c := world("ApplyOnce").WithReturnManagedFields().Build()
	h := newHarness(t, c)
	other := set("ApplyOnce", func(s *addonsv1.ClusterResourceSet) { s.Name, s.UID = "other", "other-uid" })
	h.must(c.Create(t.Context(), other))
	h.settle("set")
	h.ctl.client = unseen{c}
	var kinds []fault.Kind
	for range 2 { // the first pass adds the finalizer
		if err := h.reconcile("other"); err != nil {
			t.Fatalf("a conflict is no error of the set, and is tried again at once: %v", err)
		}
	}
	s, err := h.ctl.observe(t.Context(), other)
	h.must(err)
	for _, m := range s.Clusters {
		kinds = append(kinds, fault.KindOf(h.ctl.record(t.Context(), s, m, nil)))
	}
	if !slices.Equal(kinds, []fault.Kind{fault.Conflict, fault.Conflict}) {
		t.Errorf("bindings that others made meanwhile are conflicts: %v", kinds)
	}
	h.ctl.client = c
	h.settle("set", "other")
	h.expect("both are recorded", h.recorded("c", "set")+h.recorded("c", "other"), both+"ConfigMap cm true; ")
	b := &addonsv1.ClusterResourceSetBinding{}
	h.must(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, b))
	if len(b.OwnerReferences) != 2 {
		t.Errorf("both own the binding: %v", b.OwnerReferences)
	}
}

func TestClusterOfTheSameNameStartsAnew(t *testing.T) { // RS-06
	c := world("ApplyOnce").WithReturnManagedFields().Build()
	h := newHarness(t, c)
	h.settle("set")
	goes := cluster("c")
	h.must(c.Get(t.Context(), client.ObjectKeyFromObject(goes), goes))
	goes.Finalizers = []string{clusterv1.ClusterFinalizer} // the Cluster is seen while it is deleted
	h.must(c.Update(t.Context(), goes))
	h.must(c.Delete(t.Context(), goes))
	h.settle("set")
	h.expect("what was applied is forgotten", h.recorded("c", "set"), "no binding")
	h.must(c.Get(t.Context(), client.ObjectKeyFromObject(goes), goes))
	goes.Finalizers = nil
	h.must(c.Update(t.Context(), goes))
	h.ctl.workloads.(fakeWorkloads)["c"] = emptyCluster().Build()
	h.must(c.Create(t.Context(), cluster("c")))
	h.settle("set")
	h.expect("and applied to its successor", h.said("c"), "one")
}

// A Cluster whose deletion a hook holds back lives on, and may need its add-ons.
func TestBindingStaysUntilTheDeletionMayBegin(t *testing.T) { // LH-16
	c := world("ApplyOnce").WithReturnManagedFields().Build()
	h := newHarness(t, c)
	h.ctl.deleteHook = true
	goes := cluster("c")
	h.must(c.Get(t.Context(), client.ObjectKeyFromObject(goes), goes))
	goes.Finalizers = []string{clusterv1.ClusterFinalizer}
	goes.Spec.Topology.ClassRef.Name = "class"
	h.must(c.Update(t.Context(), goes))
	h.must(c.Delete(t.Context(), goes))
	h.settle("set")
	h.expect("it is applied while the deletion waits", h.recorded("c", "set"), "Secret s true; ConfigMap cm true; ")
	h.must(c.Get(t.Context(), client.ObjectKeyFromObject(goes), goes))
	goes.Annotations = map[string]string{"runtime.cluster.x-k8s.io/ok-to-delete": ""}
	h.must(c.Update(t.Context(), goes))
	h.settle("set")
	h.expect("forgotten when it begins", h.recorded("c", "set"), "no binding")
}

// Objects come back from a backup in any order. A binding that is there before its Cluster says what the workload cluster has.
func TestBindingIsRestoredBeforeItsCluster(t *testing.T) { // RS-04, RS-06, OR-01
	c := world("ApplyOnce").WithReturnManagedFields().Build()
	h := newHarness(t, c)
	h.settle("set")
	before := h.recorded("c", "set")
	h.must(c.Delete(t.Context(), cluster("c"))) // no one sees it go
	h.settle("set")
	h.expect("the binding stays", h.recorded("c", "set"), before)
	h.ctl.workloads.(fakeWorkloads)["c"] = emptyCluster().Build() // an administrator has deleted what was applied
	back := cluster("c")
	back.UID = "c-restored"
	h.must(c.Create(t.Context(), back))
	h.settle("set")
	h.expect("nothing is applied a second time", h.said("c"), "")
}

// A pass that has nothing to apply reads no content (RC-07), under Reconcile not even to see whether it has changed.
func TestContentIsReadWhenNeeded(t *testing.T) { // RC-07
	for _, strategy := range []string{"ApplyOnce", "Reconcile"} {
		reads := 0
		c := world(strategy).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				switch o.(type) {
				case *corev1.ConfigMap, *corev1.Secret:
					reads++
				}
				return c.Get(ctx, key, o, opts...)
			}}).Build()
		h := newHarness(t, c)
		h.settle("set")
		before := reads
		h.settle("set")
		if reads != before || before == 0 {
			t.Errorf("%s: %d reads to apply, then %d more for nothing", strategy, before, reads-before)
		}
	}
}
