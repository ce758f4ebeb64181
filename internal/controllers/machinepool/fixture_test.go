package machinepool

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func object(text string, version contract.Version) contract.Object {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		panic(err)
	}
	return contract.Object{Unstructured: u, Contract: version}
}

const ownedMeta = `, labels: {cluster.x-k8s.io/cluster-name: c}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachinePool, name: p, uid: pool, controller: true}]`

func infra(status string) contract.InfraMachinePoolView {
	return infraOf(contract.V1Beta2, `spec: {providerIDList: [x://0, x://1]}`, status)
}

func infraOf(version contract.Version, spec, status string) contract.InfraMachinePoolView {
	v := contract.InfraMachinePool(object("apiVersion: i/v1\nkind: FooPool\nmetadata: {name: i, namespace: ns"+ownedMeta+"}\n"+spec+"\nstatus: "+status, version))
	return v
}

func bootstrap(status string) contract.BootstrapConfigView {
	v := contract.BootstrapConfig(object("apiVersion: b/v1\nkind: FooConfig\nmetadata: {name: b, namespace: ns"+ownedMeta+"}\nstatus: "+status, contract.V1Beta2))
	return v
}

const provisioned = `{initialization: {provisioned: true}, replicas: 2}`

// settled is a pool of two that has all it needs, without Machines.
func settled(changes ...func(*snapshot)) snapshot {
	s := snapshot{
		Now: now,
		Pool: &clusterv1.MachinePool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "pool", Generation: 1, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}}},
			Spec: clusterv1.MachinePoolSpec{ClusterName: "c", Replicas: ptr.To[int32](2), ProviderIDList: []string{"x://0", "x://1"}},
		},
		Cluster:   &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}},
		Bootstrap: bootstrap(`{dataSecretName: data, initialization: {dataSecretCreated: true}}`),
		Infra:     infra(provisioned),
		Nodes:     observedNodes{Known: true, Items: map[string]corev1.Node{"x://0": node("n0", "x://0"), "x://1": node("n1", "x://1")}},
	}
	s.Pool.Status.ObservedGeneration = 1
	s.Cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	template := &s.Pool.Spec.Template.Spec
	template.Version = "v1.36.0"
	template.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("data"), ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: "FooConfig", Name: "b", APIGroup: "b"}}
	template.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "FooPool", Name: "i", APIGroup: "i"}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func node(name, id string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	n.Annotations = map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "ns",
		clusterv1.OwnerKindAnnotation: "MachinePool", clusterv1.OwnerNameAnnotation: "p",
	}
	n.Status.NodeInfo.KubeletVersion = "v1.36.0"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// withMachines gives the pool a kind for its instances, and the instances m0 and m1.
func withMachines(s *snapshot) {
	s.Infra = infra(`{initialization: {provisioned: true}, replicas: 2, infrastructureMachineKind: FooMachine}`)
	for _, name := range []string{"m0", "m1"} {
		s.InfraMachines = append(s.InfraMachines, object("kind: FooMachine\nmetadata: {name: "+name+"}", contract.V1Beta2))
	}
}

func machine(name, version string, conditions ...metav1.Condition) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "p", UID: "pool", Controller: ptr.To(true)},
	}}}
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"}
	m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](10)
	m.Spec.Version, m.Status.Conditions = version, conditions
	return m
}

// atMost lets the pool have so many replicas.
func atMost(n int32) func(*snapshot) {
	return func(s *snapshot) { s.Policy.Maxima.Replicas = n }
}

const tooMany = "2 replicas exceed the limit of 1 for one object: set fewer, or ask the operator to raise maxima.replicas in the configuration file (--config of slipway up or slipway manager)"

// running is a Machine of the pool as it should be.
func running(name string) clusterv1.Machine {
	return machine(name, "v1.36.0", metav1.Condition{Type: "UpToDate", Status: "True", Reason: "UpToDate"})
}

func is(t, status string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionStatus(status), Reason: t}
}

func deleted(s *snapshot) { s.Pool.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }

func texts(p reconciler.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, "do: "+a.String())
	}
	for _, w := range p.Waits {
		out = append(out, "wait: "+w.Message)
	}
	return out
}
