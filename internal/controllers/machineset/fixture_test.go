package machineset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/machines/clone"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/watches"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func object(text string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return u
}

const (
	infraTemplate     = "{apiVersion: i/v1, kind: FooMachineTemplate, metadata: {namespace: ns, name: it, uid: it, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: c, uid: cluster}]}, spec: {template: {metadata: {labels: {size: big}}, spec: {cpus: 2}}}}"
	bootstrapTemplate = "{apiVersion: b/v1, kind: FooConfigTemplate, metadata: {namespace: ns, name: bt, uid: bt, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: c, uid: cluster}]}, spec: {template: {spec: {format: x}}}}"
	stablePlane       = "{apiVersion: p/v1, kind: FooPlane, metadata: {namespace: ns, name: p, labels: {cluster.x-k8s.io/cluster-name: c}}, spec: {version: v1.36.3}, status: {versions: [{version: v1.36.3}]}}"
)

func template(text string) clone.Template {
	u := object(text)
	return clone.Template{
		Ref:    clusterv1.ContractVersionedObjectReference{APIGroup: u.GroupVersionKind().Group, Kind: u.GetKind(), Name: u.GetName()},
		Object: contract.Object{Unstructured: u, Contract: contract.V1Beta2},
	}
}

func plane(text string) contract.ControlPlaneView {
	return contract.ControlPlane(contract.Object{Unstructured: object(text), Contract: contract.V1Beta2})
}

func newSet() *clusterv1.MachineSet {
	set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ms", UID: "ms", Generation: 3, CreationTimestamp: ago(time.Hour),
		Finalizers: []string{clusterv1.MachineSetFinalizer}, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}}}}
	set.Spec = clusterv1.MachineSetSpec{ClusterName: "c", Replicas: new(int32(2)), Selector: metav1.LabelSelector{MatchLabels: map[string]string{"set": "x"}}}
	set.Spec.Template.Labels, set.Spec.Template.Annotations = map[string]string{"set": "x"}, map[string]string{"note": "1"}
	set.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3",
		Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "b", Kind: "FooConfigTemplate", Name: "bt"}},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachineTemplate", Name: "it"},
		Deletion:          clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: new(int32(60))}}
	set.Status.ObservedGeneration = 3
	return set
}

func newCluster() *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "p", Kind: "FooPlane", Name: "p"}
	c.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true), ControlPlaneInitialized: new(true)}
	return c
}

// settled is a standalone MachineSet with two Machines that run.
func settled(changes ...func(*snapshot)) snapshot {
	s := snapshot{Now: now, Set: newSet(), Cluster: newCluster(), Bootstrap: template(bootstrapTemplate), Infra: template(infraTemplate),
		ControlPlane: plane(stablePlane), Verified: true, Random: []string{"aaaaa", "bbbbb", "ccccc", "ddddd", "eeeee", "fffff"}}
	for _, name := range []string{"m1", "m2"} {
		s.Machines = append(s.Machines, member(s, name))
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// member is a Machine of the set that runs.
func member(s snapshot, name string, changes ...func(*clusterv1.Machine)) machines.OwnedMachine {
	m := s.State().Definition.Machine(name)
	m.UID, m.CreationTimestamp, m.Generation = types.UID(name), ago(time.Hour), 1
	m.Status.NodeRef.Name = "node-" + name
	m.Status.Conditions = []metav1.Condition{
		is("Ready", "True", "Ready", ""), is("Available", "True", "Available", ""), is("UpToDate", "True", "UpToDate", ""),
		is("NodeHealthy", "True", "NodeHealthy", ""), is("NodeReady", "True", "NodeReady", ""),
	}
	for _, change := range changes {
		change(m)
	}
	return machines.OwnedMachine{Machine: m, Deleted: !m.DeletionTimestamp.IsZero()}
}

func is(t, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: ago(time.Hour)}
}

// says replaces or adds conditions of a Machine.
func says(conditions ...metav1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		for _, c := range conditions {
			m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(old metav1.Condition) bool { return old.Type == c.Type })
			m.Status.Conditions = append(m.Status.Conditions, c)
		}
	}
}

// sick asks for the replacement of a Machine.
func sick() func(*clusterv1.Machine) {
	return says(is("HealthCheckSucceeded", "False", "UnhealthyNode", "bad"), is("OwnerRemediated", "False", "WaitingForRemediation", "Waiting for remediation"))
}

func going(d time.Duration) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.DeletionTimestamp = new(ago(d)) }
}

// with replaces the Machines, each with one change.
func with(changes ...func(*clusterv1.Machine)) func(*snapshot) {
	return func(s *snapshot) {
		s.Machines = nil
		for i, change := range changes {
			s.Machines = append(s.Machines, member(*s, fmt.Sprintf("m%d", i+1), change))
		}
	}
}

func asIs(*clusterv1.Machine) {}

func replicas(n int32) func(*snapshot) { return func(s *snapshot) { s.Set.Spec.Replicas = &n } }

// ofDeployment makes the set one of a MachineDeployment that asks for the same.
func ofDeployment(changes ...func(*clusterv1.MachineDeployment)) func(*snapshot) {
	return func(s *snapshot) {
		d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", UID: "md",
			Annotations: map[string]string{clusterv1.RevisionAnnotation: "2"}}}
		d.Spec = clusterv1.MachineDeploymentSpec{ClusterName: "c", Replicas: new(int32(4)), Template: *s.Set.Spec.Template.DeepCopy()}
		for _, change := range changes {
			change(d)
		}
		s.Deployment = d
		s.Set.Labels[clusterv1.MachineDeploymentNameLabel] = "md"
		s.Set.Annotations = map[string]string{clusterv1.RevisionAnnotation: "2"}
		s.Set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, clusterv1.GroupVersion.WithKind("MachineDeployment"))}
		for _, m := range s.Machines {
			m.Labels[clusterv1.MachineDeploymentNameLabel] = "md"
		}
	}
}

func texts(p reconciler.Plan) []string {
	var out []string
	for _, q := range p.Reads {
		out = append(out, "ask: "+q.String())
	}
	for _, a := range p.Actions {
		out = append(out, "do: "+a.String())
	}
	for _, w := range p.Waits {
		out = append(out, "wait: "+w.Message)
	}
	if p.Recheck > 0 {
		out = append(out, "recheck: "+p.Recheck.String())
	}
	return out
}

// workloads is one workload cluster behind a fake client.
type workloads struct {
	client client.Client
	down   bool
}

func (w *workloads) Client(context.Context, client.ObjectKey) (client.Client, error) {
	if w.down {
		return nil, workload.ErrNotConnected
	}
	return w.client, nil
}

// world is a management cluster behind a fake client.
type world struct {
	t        *testing.T
	c        client.WithWatch
	r        *reconciler.Reconciler[*clusterv1.MachineSet, snapshot]
	ctl      *controller
	workload *workloads
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	for _, gvk := range []schema.GroupVersionKind{
		{Group: "i", Version: "v1", Kind: "FooMachine"}, {Group: "i", Version: "v1", Kind: "FooMachineTemplate"},
		{Group: "b", Version: "v1", Kind: "FooConfig"}, {Group: "b", Version: "v1", Kind: "FooConfigTemplate"}, {Group: "p", Version: "v1", Kind: "FooPlane"},
	} {
		s.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
		metav1.AddToGroupVersion(s, gvk.GroupVersion())
		gvk.Kind += "List"
		s.AddKnownTypeWithName(gvk, &unstructured.UnstructuredList{})
	}
	return s
}

func crd(name string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}}
}

func managementCluster(objs ...client.Object) *fake.ClientBuilder {
	base := []client.Object{
		newCluster(), crd("foomachines.i"), crd("foomachinetemplates.i"), crd("fooconfigs.b"), crd("fooconfigtemplates.b"), crd("fooplanes.p"),
		object(infraTemplate), object(bootstrapTemplate), object(stablePlane),
	}
	b := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(append(base, objs...)...).
		WithStatusSubresource(&clusterv1.Machine{}, &clusterv1.MachineSet{}).WithIndex(&clusterv1.Machine{}, byCluster, clusterOf)
	return testkit.WithIndexes(b, func(i client.FieldIndexer) error {
		return errors.Join(watches.IndexByCluster(i, Name, &clusterv1.MachineSet{}), referrers().Index(i, Name))
	})
}

func newWorld(t *testing.T, c client.WithWatch) *world {
	w := &world{t: t, c: c, workload: &workloads{client: fake.NewClientBuilder().WithScheme(newScheme()).Build()}}
	w.restart()
	return w
}

// restart is what a crash leaves of the controller: nothing but the API.
func (w *world) restart() {
	w.ctl = &controller{client: w.c, live: w.c, used: clone.NewUsage(w.c), workloads: w.workload, writer: kube.NewWriter(w.c, Name), now: func() time.Time { return now },
		templates: kube.NewReferences(w.c, nil), controlPlanes: kube.NewReferences(w.c, nil), clones: kube.NewReferences(w.c, nil)}
	next := 0
	w.ctl.intn = func(n int) int { next++; return (next*7 + next/5) % n }
	w.r = &reconciler.Reconciler[*clusterv1.MachineSet, snapshot]{Controller: w.ctl.definition(), Client: w.c, Writer: w.ctl.writer, Now: w.ctl.now}
}

// pass reconciles once.
func (w *world) pass() (ctrl.Result, error) {
	return w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "ms"}})
}

// settle reconciles until nothing changes any more.
func (w *world) settle() {
	w.t.Helper()
	before := ""
	for range 40 {
		_, err := w.pass()
		after := w.versions()
		if err == nil && before == after {
			return
		}
		before = after
	}
	w.t.Fatalf("does not settle")
}

func (w *world) versions() string {
	text := ""
	for _, list := range []client.ObjectList{&clusterv1.MachineSetList{}, &clusterv1.MachineList{}, w.listOf("i", "FooMachine"), w.listOf("b", "FooConfig")} {
		w.must(w.c.List(w.t.Context(), list))
		w.must(apimeta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			text += o.GetName() + "@" + o.GetResourceVersion() + " "
			return nil
		}))
	}
	return text
}

func (w *world) listOf(group, kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind + "List"})
	return l
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set() *clusterv1.MachineSet {
	w.t.Helper()
	set := &clusterv1.MachineSet{}
	w.must(w.c.Get(w.t.Context(), client.ObjectKey{Namespace: "ns", Name: "ms"}, set))
	return set
}

func (w *world) machines() []clusterv1.Machine {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	w.must(w.c.List(w.t.Context(), list))
	return list.Items
}

func (w *world) clones(group, kind string) []unstructured.Unstructured {
	w.t.Helper()
	list := w.listOf(group, kind)
	w.must(w.c.List(w.t.Context(), list))
	return list.Items
}

// change patches an object as it is now, or its status.
func (w *world) change(o client.Object, f func()) {
	w.t.Helper()
	w.must(w.c.Get(w.t.Context(), client.ObjectKeyFromObject(o), o))
	before := o.DeepCopyObject().(client.Object)
	f()
	after := o.DeepCopyObject().(client.Object)
	w.twice(func() error { return w.c.Patch(w.t.Context(), o, client.MergeFrom(before)) })
	w.twice(func() error { return w.c.Status().Patch(w.t.Context(), after, client.MergeFrom(before)) })
}

// twice tries again what is the test's own write and fails by injection.
func (w *world) twice(f func() error) {
	w.t.Helper()
	err := f()
	if errors.Is(err, testkit.ErrInjected) {
		err = f()
	}
	w.must(client.IgnoreNotFound(err))
}
