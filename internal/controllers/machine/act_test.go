package machine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/controllers/machine/drain"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/testkit"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
)

// workloads is one workload cluster behind a fake client.
type workloads struct {
	client client.Client
	down   bool
	behind bool // the cache has no Nodes yet
	// watched counts the calls of Watch.
	watched *int
}

func (w workloads) Client(context.Context, client.ObjectKey) (client.Client, error) {
	if w.down {
		return nil, slipwayworkload.ErrNotConnected
	}
	return w.client, nil
}

func (w workloads) Watch(context.Context, client.ObjectKey, slipwayworkload.WatchRequest) error {
	if w.down {
		return slipwayworkload.ErrNotConnected
	}
	if w.watched != nil {
		*w.watched++
	}
	return nil
}

func (w workloads) Health(client.ObjectKey) slipwayworkload.Health {
	if w.down {
		return slipwayworkload.Health{LastProbeSuccess: ago(time.Minute), ConsecutiveFailures: 5}
	}
	return slipwayworkload.Health{Connected: true, LastProbeSuccess: ago(time.Second)}
}

func (w workloads) Nodes(ctx context.Context, _ client.ObjectKey, id string) ([]corev1.Node, error) {
	if w.down {
		return nil, slipwayworkload.ErrNotConnected
	}
	if w.behind {
		return nil, nil
	}
	list := &corev1.NodeList{}
	err := w.client.List(ctx, list)
	var out []corev1.Node
	for _, n := range list.Items {
		if n.Spec.ProviderID == id {
			out = append(out, n)
		}
	}
	return out, err
}

var key = client.ObjectKey{Namespace: "ns", Name: "m"}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{{Group: "i", Version: "v1", Kind: "FooMachine"}, {Group: "b", Version: "v1", Kind: "FooConfig"}, {Group: "p", Version: "v1", Kind: "FooPlane"}} {
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	return s
}

func crd(name string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}}
}

func foreign(text string) client.Object {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

// world is a management cluster with a Machine and what it refers to.
func world(m *clusterv1.Machine, extra ...client.Object) *fake.ClientBuilder {
	cluster := settled().Cluster
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "p", Kind: "FooPlane", Name: "p"}
	const made = `namespace: ns, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineSet, name: ms, uid: ms, controller: true}]`
	objs := append([]client.Object{
		m, cluster, crd("foomachines.i"), crd("fooconfigs.b"), crd("fooplanes.p"),
		foreign("apiVersion: p/v1\nkind: FooPlane\nmetadata: {name: p, namespace: ns}\nstatus: {externalManagedControlPlane: true}"),
		foreign("apiVersion: i/v1\nkind: FooMachine\nmetadata: {name: i, " + made + "}\n" + readyInfra),
		foreign("apiVersion: b/v1\nkind: FooConfig\nmetadata: {name: b, " + made + "}\n" + readyBootstrap),
	}, extra...)
	b := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objs...).WithStatusSubresource(&clusterv1.Machine{}).
		WithIndex(&clusterv1.Machine{}, reconciler.ReferenceField(Name), reconciler.ReferenceKeys(references))
	for field, value := range indexes() {
		b = b.WithIndex(&clusterv1.Machine{}, field, value)
	}
	return b
}

func bare(s Snapshot) *clusterv1.Machine {
	s.Machine.Generation, s.Machine.OwnerReferences, s.Machine.Labels = 0, nil, nil
	return s.Machine
}

func controller(c client.WithWatch, w workloads) (*Controller, *reconciler.Reconciler[*clusterv1.Machine, Snapshot]) {
	ctl := &Controller{client: c, refs: kube.NewReferences(c, nil), now: func() time.Time { return now }, settings: Settings{}.withDefaults(), workloads: w}
	r := &reconciler.Reconciler[*clusterv1.Machine, Snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	return ctl, r
}

// settle reconciles until a pass neither fails nor writes.
func settle(t *testing.T, c client.WithWatch, w workloads) {
	t.Helper()
	_, r := controller(c, w)
	quiet := 0
	for range 40 {
		before := fingerprint(t, c, w.client)
		_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		if err != nil && !errors.Is(err, testkit.ErrInjected) && fault.KindOf(err) != fault.Conflict {
			t.Fatal(err)
		}
		if err == nil && fingerprint(t, c, w.client) == before {
			if quiet++; quiet == 2 {
				return
			}
		} else {
			quiet = 0
		}
	}
	t.Fatal("does not settle")
}

// fingerprint is the resource versions of what the controller writes.
func fingerprint(t *testing.T, c, workload client.Client) string {
	t.Helper()
	machines, nodes, pods := &clusterv1.MachineList{}, &corev1.NodeList{}, &corev1.PodList{}
	if err := errors.Join(c.List(context.Background(), machines), workload.List(context.Background(), nodes), workload.List(context.Background(), pods)); err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, m := range machines.Items {
		out += m.Name + m.ResourceVersion + " "
	}
	for _, n := range nodes.Items {
		out += n.Name + n.ResourceVersion + " "
	}
	for _, p := range pods.Items {
		out += p.Name + p.ResourceVersion + " "
	}
	return out
}

// workload returns a workload cluster with one Node, held back by its taint.
func workload() *fake.ClientBuilder {
	n := node()
	n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint}
	return workloadOf(n)
}

// workloadOf returns a workload cluster with these objects.
func workloadOf(objs ...client.Object) *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objs...).WithIndex(&corev1.Pod{}, drain.NodeName,
		func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
}

func TestEveryWriteFailsOnce(t *testing.T) { // MA-01 to MA-06, MA-08, MA-10, MA-13, MA-25
	testkit.EveryWrite(t, func() *fake.ClientBuilder { return world(bare(fresh())) }, func(t *testing.T, c client.WithWatch) {
		w := workloads{client: workload().Build()}
		settle(t, c, w)
		got, n := &clusterv1.Machine{}, &corev1.Node{}
		if err := errors.Join(c.Get(context.Background(), key, got), w.client.Get(context.Background(), client.ObjectKey{Name: "n"}, n)); err != nil {
			t.Fatal(err)
		}
		set := condition.Set(got.Status.Conditions)
		if len(got.Finalizers) != 1 || got.Labels[clusterv1.ClusterNameLabel] != "c" || got.OwnerReferences[0].Kind != "Cluster" ||
			got.Spec.ProviderID != "x://1" || *got.Spec.Bootstrap.DataSecretName != "data" || got.Status.Phase != "Running" ||
			got.Status.NodeRef.Name != "n" || !set.IsTrue("Ready") || !set.IsTrue("Available") || !set.IsFalse("Paused") {
			t.Errorf("machine %+v", got)
		}
		if n.Annotations[clusterv1.MachineAnnotation] != "m" || len(n.Spec.Taints) > 0 {
			t.Errorf("node %+v", n)
		}
		for kind, name := range map[string]string{"FooMachine": "i", "FooConfig": "b"} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Group: name, Version: "v1", Kind: kind})
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, u); err != nil {
				t.Fatal(err)
			}
			if owner := metav1.GetControllerOf(u); owner == nil || owner.Kind != "Machine" || len(u.GetOwnerReferences()) != 1 || u.GetLabels()[clusterv1.ClusterNameLabel] != "c" {
				t.Errorf("MA-06: %s: owners %v, labels %v", kind, u.GetOwnerReferences(), u.GetLabels())
			}
		}
	})
}

// TestEveryWriteToTheNodeFailsOnce does the same for the writes to the workload cluster.
func TestEveryWriteToTheNodeFailsOnce(t *testing.T) { // MA-13, MA-18
	patches := 0
	testkit.EveryWrite(t, workload, func(t *testing.T, remoteClient client.WithWatch) {
		patches = 0
		counting := interceptor.NewClient(remoteClient, interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				patches++
				return c.Patch(ctx, o, p, opts...)
			},
		})
		c := world(bare(fresh())).WithReturnManagedFields().Build()
		settle(t, c, workloads{client: counting})
		n := &corev1.Node{}
		if err := remoteClient.Get(context.Background(), client.ObjectKey{Name: "n"}, n); err != nil {
			t.Fatal(err)
		}
		if n.Annotations[clusterv1.MachineAnnotation] != "m" || len(n.Spec.Taints) > 0 {
			t.Errorf("node %+v", n)
		}
	})
	if patches != 1 {
		t.Errorf("%d patches of the Node, want one for labels, annotations and taint", patches)
	}
}

func TestDeletionWhileWritesFail(t *testing.T) { // MD-01, MD-14, MD-15, MD-16
	testkit.EveryWrite(t, func() *fake.ClientBuilder {
		m := settled(deleted).Machine
		m.Generation, m.Finalizers = 0, []string{clusterv1.MachineFinalizer}
		return world(m)
	}, func(t *testing.T, c client.WithWatch) {
		w := workloads{client: workload().Build()}
		settle(t, c, w)
		for name, gvk := range map[string]schema.GroupVersionKind{"i": {Group: "i", Version: "v1", Kind: "FooMachine"}, "b": {Group: "b", Version: "v1", Kind: "FooConfig"},
			"m": clusterv1.GroupVersion.WithKind("Machine")} {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gvk)
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, u); !apierrors.IsNotFound(err) {
				t.Errorf("%s still exists: %v", gvk.Kind, err)
			}
		}
		if err := w.client.Get(context.Background(), client.ObjectKey{Name: "n"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
			t.Errorf("Node still exists: %v", err)
		}
	})
}

func TestFinalizerComesFirst(t *testing.T) { // MA-01, MA-02, MA-03
	c := world(bare(fresh())).WithReturnManagedFields().Build()
	_, r := controller(c, workloads{client: workload().Build()})
	if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	got := &clusterv1.Machine{}
	if err := c.Get(context.Background(), key, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{clusterv1.MachineFinalizer}, got.Finalizers); diff != "" || len(got.Status.Conditions) > 0 {
		t.Errorf("the first pass adds the finalizer, and acts on nothing: %+v", got)
	}
	if len(got.OwnerReferences) != 1 || got.Labels[clusterv1.ClusterNameLabel] != "c" {
		t.Errorf("what is known by then goes into the same write: %+v", got.ObjectMeta)
	}
}

func TestPaused(t *testing.T) { // PA-01
	m := bare(fresh())
	m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	c := world(m).WithReturnManagedFields().Build()
	settle(t, c, workloads{client: workload().Build()})
	got := &clusterv1.Machine{}
	if err := c.Get(context.Background(), key, got); err != nil {
		t.Fatal(err)
	}
	if len(got.Status.Conditions) != 1 || !condition.Set(got.Status.Conditions).IsTrue("Paused") || got.Spec.ProviderID != "" {
		t.Errorf("nothing but the Paused condition: %+v", got)
	}
}

func TestObjectOfAnotherMachine(t *testing.T) { // MA-06
	const theirs = "FooMachine i belongs to Machine other: refer to an object of its own in Machine m"
	taken := func(s *Snapshot) {
		s.Infra.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: "other", UID: "other", Controller: ptr(true)}})
	}
	s := fresh(func(s *Snapshot) { s.Infra, s.Bootstrap = infra(readyInfra), bootstrap(readyBootstrap) }, taken)
	p := Decide(s)
	want := []string{"do: take over what bootstrap and infrastructure report", "wait: " + theirs}
	if diff := cmp.Diff(want, texts(p)); diff != "" {
		t.Errorf("it is left alone (-want +got):\n%s", diff)
	}
	copyProviderFields(s, s.Machine)
	got := status(s, reconciler.Outcome{})
	if c := condition.Set(got.Conditions).Get("InfrastructureReady"); c.Status != "Unknown" || c.Message != theirs {
		t.Errorf("what a person has to do: %v", c)
	}
	if s.Machine.Spec.ProviderID != "" || got.Initialization.InfrastructureProvisioned != nil || len(got.Addresses) != 0 || got.ObservedGeneration != 0 {
		t.Errorf("something was taken over from another Machine's infrastructure: %+v %+v", s.Machine.Spec, got)
	}
	s = settled(deleted, noNode, func(s *Snapshot) { s.Bootstrap = contract.BootstrapConfigView{} }, taken)
	if p := Decide(s); !p.Idle() {
		t.Errorf("the other Machine's infrastructure is deleted: %v", texts(p))
	}
}

// observed reads the snapshot of a settled Machine in a changed world.
func observed(t *testing.T, m *clusterv1.Machine, w workloads, extra ...client.Object) Snapshot {
	t.Helper()
	ctl, _ := controller(world(m, extra...).Build(), w)
	s, err := ctl.observe(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestObserveNode(t *testing.T) { // MA-08, MA-20
	twin := node()
	twin.Name = "twin"
	other := node()
	other.Spec.ProviderID = "x://2"
	nameless := node()
	nameless.Spec.ProviderID = ""
	build := func(nodes ...client.Object) workloads {
		return workloads{client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(nodes...).Build()}
	}
	cases := map[string]struct {
		reason string
		w      workloads
		want   Node
	}{
		"found":      {"by provider ID", build(node()), Node{WasRead: true, Item: node()}},
		"none":       {"gone", build(), Node{WasRead: true}},
		"twins":      {"a provider ID has to be unique", build(node(), twin), Node{WasRead: true, Duplicates: []string{"n", "twin"}}},
		"name taken": {"a Node of the known name with another provider ID is another machine's", build(other), Node{WasRead: true, OtherProviderID: "x://2"}},
		"by name":    {"the Node that was found before has lost its provider ID", build(nameless.DeepCopy()), Node{WasRead: true, Item: nameless}},
		"down":       {"not connected is a fact, not an error", workloads{down: true}, Node{Unreachable: true, Problem: "the workload cluster is not connected"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := observed(t, settled().Machine, tc.w).Node
			if got.Item != nil {
				got.Item.ResourceVersion, got.Item.TypeMeta = "", metav1.TypeMeta{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// The Node is looked for as soon as there is a connection, and is not followed before the control plane is initialized.
func TestObserveNodeBeforeInitialization(t *testing.T) { // CL-10, MA-08, MA-09
	unseen := func(s *Snapshot) {
		s.Machine.Status.NodeRef.Name, s.Machine.Finalizers = "", []string{clusterv1.MachineFinalizer}
	}
	begins := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "begins", UID: "begins"}}
	begins.Status.Initialization.InfrastructureProvisioned = ptr(true)
	inIt := func(s *Snapshot) {
		s.Machine.Spec.ClusterName, s.Machine.Labels[clusterv1.ClusterNameLabel] = "begins", "begins"
		s.Machine.OwnerReferences[0].Name, s.Machine.OwnerReferences[0].UID = "begins", "begins"
	}
	for name, tc := range map[string]struct {
		reason  string
		s       Snapshot
		w       workloads
		want    Node
		watched int
	}{
		"there":         {"a control plane may be initialized only once its Machine has a Node", settled(unseen, inIt), workloads{client: workloadOf(node()).Build()}, Node{WasRead: true, Item: node()}, 0},
		"not yet":       {"it is looked for again", settled(unseen, inIt), workloads{client: workloadOf().Build()}, Node{WasRead: true}, 0},
		"not connected": {"what is waited for is the control plane", settled(unseen, inIt), workloads{down: true}, Node{Waiting: waitsForInitialization}, 0},
		"initialized":   {"Nodes are followed", settled(unseen), workloads{client: workloadOf(node()).Build()}, Node{WasRead: true, Item: node()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			watched := 0
			tc.w.watched = &watched
			got := observed(t, tc.s.Machine, tc.w, begins.DeepCopy())
			if got.Node.Item != nil {
				got.Node.Item.ResourceVersion, got.Node.Item.TypeMeta = "", metav1.TypeMeta{}
			}
			if diff := cmp.Diff(tc.want, got.Node); diff != "" || watched != tc.watched {
				t.Errorf("%s: %d watches, want %d (-want +got):\n%s", tc.reason, watched, tc.watched, diff)
			}
			if after := Decide(got).Recheck; (after == nodeRecheck) != (got.Node.WasRead && tc.watched == 0) {
				t.Errorf("%s: looks again after %s", tc.reason, after)
			}
		})
	}
}

// A Node that came while the deletion began is in the workload cluster, and not in the cache yet.
func TestObserveLastNode(t *testing.T) { // MD-15
	stale := func(nodes ...client.Object) workloads {
		return workloads{behind: true, client: fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(nodes...).Build()}
	}
	deleted := func(s *Snapshot) { deleted(s); s.Machine.Finalizers = []string{clusterv1.MachineFinalizer} }
	infraGone := func(s *Snapshot) { s.Machine.Spec.InfrastructureRef.Name = "gone" }
	gone := func(s *Snapshot) { infraGone(s); s.Machine.Spec.Bootstrap.ConfigRef.Name = "gone" }
	unseen := func(s *Snapshot) { s.Machine.Status.NodeRef.Name = "" }
	noContract := crd("unknowns.i")
	noContract.SetLabels(nil)
	for name, tc := range map[string]struct {
		reason string
		s      Snapshot
		w      workloads
		want   string
	}{
		"late":                {"nothing else leads to it", settled(deleted, gone, unseen), stale(node()), "n"},
		"none":                {"", settled(deleted, gone, unseen), stale(), ""},
		"infrastructure left": {"there is time: it may still come", settled(deleted, unseen), stale(node()), ""},
		"bootstrap left":      {"the last look is the one that counts", settled(deleted, infraGone, unseen), stale(node()), ""},
		"unreadable":          {"there may be infrastructure", settled(deleted, gone, unseen, func(s *Snapshot) { s.Machine.Spec.InfrastructureRef.Kind = "Unknown" }), stale(node()), ""},
		"no provider ID":      {"nobody knows which it would be", settled(deleted, gone, unseen, func(s *Snapshot) { s.Machine.Spec.ProviderID = "" }), stale(node()), ""},
		"not deleted":         {"the cache will have it", settled(gone, unseen), stale(node()), ""},
		"goes with cluster":   {"MD-01", settled(deleted, gone, unseen, func(s *Snapshot) { s.Machine.Spec.ClusterName = "none" }), stale(node()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if item := observed(t, tc.s.Machine, tc.w, noContract).Node.Item; item != nil {
				got = item.Name
			}
			if got != tc.want {
				t.Errorf("%s: Node %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestObserveOwners(t *testing.T) { // MA-14, MA-24
	controlled := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name, UID: types.UID(name), Controller: ptr(true)}}
	}
	m := settled().Machine
	m.OwnerReferences = controlled("MachineSet", "ms")
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ms", OwnerReferences: controlled("MachineDeployment", "md")}}
	md := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md"}}
	standalone := set.DeepCopy()
	standalone.OwnerReferences = nil
	for name, tc := range map[string]struct {
		owners []client.Object
		want   bool
	}{
		"both":                    {[]client.Object{set, md}, true},
		"standalone":              {[]client.Object{standalone, md}, false},
		"deployment not restored": {[]client.Object{set}, false},
		"none":                    {nil, false},
	} {
		s := observed(t, m.DeepCopy(), workloads{client: workload().Build()}, tc.owners...)
		if (s.Set != nil) != tc.want || (s.Deployment != nil) != tc.want {
			t.Errorf("%s: MachineSet %v, MachineDeployment %v", name, s.Set, s.Deployment)
		}
	}
}

func TestObserveControlPlane(t *testing.T) { // MD-01
	m := settled(deleted).Machine
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	cp := settled().Machine
	cp.Name, cp.Labels[clusterv1.MachineControlPlaneLabel] = "cp", ""
	got := observed(t, m, workloads{client: workload().Build()}, cp).ControlPlane
	if diff := cmp.Diff(ControlPlane{External: true, Others: 1}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// managed is a Machine that is being deleted, and its Cluster, which has a control plane.
func managed(kind, name string) (*clusterv1.Machine, *clusterv1.Cluster) {
	m, cluster := settled(deleted).Machine, settled().Cluster
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	cluster.Name, m.Spec.ClusterName = "managed", "managed"
	cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: kind, Name: name}
	return m, cluster
}

// A control plane that cannot be read is not one that is gone: Pods would be killed without a drain.
func TestUnreadableControlPlane(t *testing.T) { // MD-01
	m, cluster := managed("Unknown", "p")
	noContract := crd("unknowns.i")
	noContract.SetLabels(nil)
	s := observed(t, m, workloads{client: workload().Build()}, cluster, noContract)
	if diff := cmp.Diff(ControlPlane{Unreadable: true}, s.ControlPlane); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if skipsNodeDeletion(s) {
		t.Error("the Node is left to a cluster that may have a control plane")
	}
	s.ControlPlane.Unreadable = false
	if !skipsNodeDeletion(s) {
		t.Error("no control plane can be read where there is none")
	}
}

// A control plane that says something unreadable about who manages it is not one without a control plane.
func TestUnreadableExternalControlPlane(t *testing.T) { // MD-01
	m, cluster := managed("FooMachine", "odd")
	odd := foreign("apiVersion: i/v1\nkind: FooMachine\nmetadata: {name: odd, namespace: ns}\nstatus: {externalManagedControlPlane: 'yes'}")
	s := observed(t, m, workloads{client: workload().Build()}, cluster, odd)
	if diff := cmp.Diff(ControlPlane{Unreadable: true}, s.ControlPlane); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNodeFindsItsMachine(t *testing.T) { // MA-09
	named := settled().Machine
	named.Generation = 0
	c := world(named).Build()
	ctl, _ := controller(c, workloads{})
	cluster := client.ObjectKey{Namespace: "ns", Name: "c"}
	marked := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x", Annotations: map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: "m"}}}
	strange := marked.DeepCopy()
	strange.Annotations[clusterv1.ClusterNameAnnotation] = "other"
	cases := map[string]struct {
		node *corev1.Node
		want int
	}{
		"by annotation":      {marked, 1},
		"by name":            {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, 1},
		"by provider ID":     {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: corev1.NodeSpec{ProviderID: "x://1"}}, 1},
		"of no Machine":      {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, 0},
		"of another cluster": {strange, 0},
	}
	for name, tc := range cases {
		got := ctl.ofNode(context.Background(), cluster, tc.node)
		if len(got) != tc.want || tc.want == 1 && got[0].NamespacedName != key {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := ctl.ofCluster(context.Background(), cluster); len(got) != 1 {
		t.Errorf("a cluster wakes its Machines: %v", got)
	}
}
