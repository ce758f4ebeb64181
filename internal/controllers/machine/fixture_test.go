package machine

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/kube"
	"github.com/slipwayhq/slipway/internal/reconciler"
	slipwayworkload "github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
	"github.com/slipwayhq/slipway/test/testkit"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func object(text string, version contract.Version) contract.Object {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return contract.Object{Unstructured: u, Contract: version}
}

const ownedMeta = `namespace: ns, labels: {cluster.x-k8s.io/cluster-name: c}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, name: m, uid: machine, controller: true}]`

func infra(rest string) contract.InfraMachineView { return infraOf(contract.V1Beta2, rest) }

func infraOf(version contract.Version, rest string) contract.InfraMachineView {
	v := contract.InfraMachine(object("apiVersion: i/v1\nkind: FooMachine\nmetadata: {name: i, "+ownedMeta+"}\n"+rest, version))
	return v
}

func bootstrap(rest string) contract.BootstrapConfigView {
	v := contract.BootstrapConfig(object("apiVersion: b/v1\nkind: FooConfig\nmetadata: {name: b, "+ownedMeta+"}\n"+rest, contract.V1Beta2))
	return v
}

const (
	readyInfra     = "spec: {providerID: x://1}\nstatus: {initialization: {provisioned: true}, failureDomain: a, addresses: [{type: InternalIP, address: 10.0.0.1}], conditions: [{type: Ready, status: 'True', reason: Fine}]}"
	readyBootstrap = "status: {dataSecretName: data, initialization: {dataSecretCreated: true}, conditions: [{type: Ready, status: 'True', reason: Fine}]}"
)

func is(t, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

// settled is a Machine that runs, with all it needs.
func settled(changes ...func(*snapshot)) snapshot {
	s := snapshot{
		Now: now, Settings: Settings{}.withDefaults(),
		Machine: &clusterv1.Machine{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "machine", Generation: 7, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}}},
			Spec: clusterv1.MachineSpec{ClusterName: "c", ProviderID: "x://1", FailureDomain: "a",
				Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data"),
					ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "b", Kind: "FooConfig", Name: "b"}},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachine", Name: "i"}},
		},
		Cluster:    &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}},
		Bootstrap:  bootstrap(readyBootstrap),
		Infra:      infra(readyInfra),
		Connection: slipwayworkload.Health{Connected: true, LastProbeSuccess: ago(time.Second)},
	}
	s.Cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	s.Machine.Status.Initialization = clusterv1.MachineInitializationStatus{InfrastructureProvisioned: ptr.To(true), BootstrapDataSecretCreated: ptr.To(true)}
	s.Machine.Status.NodeRef.Name = "n"
	s.Machine.Status.Phase = "Running"
	s.Node = observedNode{WasRead: true, Item: node()}
	metadataOf(s).Sync(s.Node.Item)
	for _, change := range changes {
		change(&s)
	}
	return s
}

// ofDeployment makes the Machine one of a MachineDeployment that has moved on as the changes say since it was made.
func ofDeployment(changes ...func(*clusterv1.MachineDeployment)) func(*snapshot) {
	return func(s *snapshot) {
		first := map[string]string{clusterv1.RevisionAnnotation: "1"}
		s.Set = &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ms", Annotations: first, CreationTimestamp: metav1.NewTime(ago(time.Hour))}}
		s.Set.Spec.Template.Spec = clusterv1.MachineSpec{ClusterName: "c", Version: "v1.36.3", InfrastructureRef: s.Machine.Spec.InfrastructureRef}
		s.Deployment = &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "md", Annotations: maps.Clone(first)}}
		s.Deployment.Spec.Template = *s.Set.Spec.Template.DeepCopy()
		for _, change := range changes {
			change(s.Deployment)
		}
	}
}

// fresh is a Machine that has just been created, and has nothing yet.
func fresh(changes ...func(*snapshot)) snapshot {
	return settled(append([]func(*snapshot){func(s *snapshot) {
		s.Infra, s.Bootstrap, s.Node = contract.InfraMachineView{}, contract.BootstrapConfigView{}, observedNode{WasRead: true}
		s.Machine.Spec.ProviderID, s.Machine.Spec.FailureDomain, s.Machine.Spec.Bootstrap.DataSecretName = "", "", nil
		s.Machine.Status = clusterv1.MachineStatus{}
	}}, changes...)...)
}

func node(conditions ...corev1.NodeCondition) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node"}, Spec: corev1.NodeSpec{ProviderID: "x://1"}}
	n.Status.NodeInfo.KubeletVersion = "v1.36.0"
	n.Status.Conditions = append([]corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: "True"}, {Type: corev1.NodeMemoryPressure, Status: "False"},
		{Type: corev1.NodeDiskPressure, Status: "False"}, {Type: corev1.NodePIDPressure, Status: "False"},
	}, conditions...)
	return n
}

// nodeSays changes one condition of the Node.
func nodeSays(t corev1.NodeConditionType, status corev1.ConditionStatus, message string) func(*snapshot) {
	return func(s *snapshot) {
		for i := range s.Node.Item.Status.Conditions {
			if c := &s.Node.Item.Status.Conditions[i]; c.Type == t {
				c.Status, c.Message = status, message
			}
		}
	}
}

func deleted(s *snapshot) { s.Machine.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }

func deletedSince(d time.Duration) func(*snapshot) {
	return func(s *snapshot) { s.Machine.DeletionTimestamp = ptr.To(metav1.NewTime(ago(d))) }
}

// drained is a Node without Pods that have to leave.
func drained(s *snapshot) { holding()(s) }

func noProviders(s *snapshot) {
	s.Infra, s.Bootstrap = contract.InfraMachineView{}, contract.BootstrapConfigView{}
}

func noNode(s *snapshot) { s.Node.Item = nil }

func was(conditions ...metav1.Condition) func(*snapshot) {
	return func(s *snapshot) { s.Machine.Status.Conditions = conditions }
}

// ofPool makes the Machine one of a MachinePool: no bootstrap of its own.
func ofPool(s *snapshot) {
	s.Machine.Labels[clusterv1.MachinePoolNameLabel] = "mp"
	s.Machine.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "mp", UID: "mp", Controller: ptr.To(true)}}
	s.Machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("")}
	s.Bootstrap = contract.BootstrapConfigView{}
	if s.Node.Item != nil {
		metadataOf(*s).Sync(s.Node.Item)
	}
}

func texts(p reconciler.Plan) []string {
	var out []string
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

// fakeWorkloads is one workload cluster behind a fake client.
type fakeWorkloads struct {
	client client.Client
	down   bool
	behind bool // the cache has no Nodes yet
	// watched counts the calls of Watch.
	watched *int
}

func (w fakeWorkloads) Client(context.Context, client.ObjectKey) (client.Client, error) {
	if w.down {
		return nil, slipwayworkload.ErrNotConnected
	}
	return w.client, nil
}

func (w fakeWorkloads) Watch(context.Context, client.ObjectKey, slipwayworkload.WatchRequest) error {
	if w.down {
		return slipwayworkload.ErrNotConnected
	}
	if w.watched != nil {
		*w.watched++
	}
	return nil
}

func (w fakeWorkloads) Health(client.ObjectKey) slipwayworkload.Health {
	if w.down {
		return slipwayworkload.Health{LastProbeSuccess: ago(time.Minute), ConsecutiveFailures: 5}
	}
	return slipwayworkload.Health{Connected: true, LastProbeSuccess: ago(time.Second)}
}

func (w fakeWorkloads) Nodes(ctx context.Context, _ client.ObjectKey, id string) ([]corev1.Node, error) {
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
	b := fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objs...).WithStatusSubresource(&clusterv1.Machine{})
	testkit.WithIndexes(b, func(i client.FieldIndexer) error { return referrers().Index(i, Name) })
	for field, value := range indexes() {
		b = b.WithIndex(&clusterv1.Machine{}, field, value)
	}
	return b
}

func bare(s snapshot) *clusterv1.Machine {
	s.Machine.Generation, s.Machine.OwnerReferences, s.Machine.Labels = 0, nil, nil
	return s.Machine
}

func newController(c client.WithWatch, w fakeWorkloads) (*controller, *reconciler.Reconciler[*clusterv1.Machine, snapshot]) {
	ctl := &controller{client: c, refs: kube.NewReferences(c, nil), now: func() time.Time { return now }, settings: Settings{}.withDefaults(), workloads: w}
	r := &reconciler.Reconciler[*clusterv1.Machine, snapshot]{Controller: ctl.definition(), Client: c, Writer: kube.NewWriter(c, Name), Now: ctl.now}
	ctl.writer = r.Writer
	return ctl, r
}

// settle reconciles until a pass neither fails nor writes.
func settle(t *testing.T, c client.WithWatch, w fakeWorkloads) {
	t.Helper()
	_, r := newController(c, w)
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
	return fake.NewClientBuilder().WithScheme(newScheme()).WithObjects(objs...).WithIndex(&corev1.Pod{}, "spec.nodeName",
		func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
}
