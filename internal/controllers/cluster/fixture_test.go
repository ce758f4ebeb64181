package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/workload"
	"github.com/slipwayhq/slipway/sdk/contract"
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

const ownedMeta = `namespace: ns, labels: {cluster.x-k8s.io/cluster-name: c}, ownerReferences: [{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, name: c, uid: cluster, controller: false}]`

func infra(rest string) contract.InfraClusterView {
	v := contract.InfraCluster(object("apiVersion: i/v1\nkind: FooCluster\nmetadata: {name: i, "+ownedMeta+"}\n"+rest, contract.V1Beta2))
	return v
}

func olderInfra(rest string) contract.InfraClusterView {
	v := contract.InfraCluster(object("apiVersion: i/v1\nkind: FooCluster\nmetadata: {name: i, "+ownedMeta+"}\n"+rest, contract.V1Beta1))
	return v
}

func control(rest string) contract.ControlPlaneView {
	v := contract.ControlPlane(object("apiVersion: p/v1\nkind: FooPlane\nmetadata: {name: p, "+ownedMeta+"}\n"+rest, contract.V1Beta2))
	return v
}

func olderControl(rest string) contract.ControlPlaneView {
	v := contract.ControlPlane(object("apiVersion: p/v1\nkind: FooPlane\nmetadata: {name: p, "+ownedMeta+"}\n"+rest, contract.V1Beta1))
	return v
}

const (
	readyInfra   = "spec: {controlPlaneEndpoint: {host: h, port: 6443}}\nstatus: {initialization: {provisioned: true}, failureDomains: [{name: a, controlPlane: true}], conditions: [{type: Ready, status: 'True', reason: Fine}]}"
	readyControl = "spec: {replicas: 3, version: v1.36.0}\nstatus: {initialization: {controlPlaneInitialized: true}, replicas: 3, readyReplicas: 2, availableReplicas: 1, upToDateReplicas: 3, versions: [{version: v1.36.0, replicas: 3}], conditions: [{type: Available, status: 'True', reason: Fine}]}"
)

func is(t, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

// settled is a Cluster with a pool that has all it needs.
func settled(changes ...func(*snapshot)) snapshot {
	s := snapshot{
		Now: now, Settings: Settings{}.withDefaults(),
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster", Generation: 7},
			Spec: clusterv1.ClusterSpec{
				ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "h", Port: 6443},
				InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooCluster", Name: "i"},
				ControlPlaneRef:      clusterv1.ContractVersionedObjectReference{APIGroup: "p", Kind: "FooPlane", Name: "p"},
			},
		},
		Infra: infra(readyInfra), ControlPlane: control(readyControl),
		Pools:      []clusterv1.MachinePool{pool("mp")},
		Machines:   []clusterv1.Machine{machine("mp-0", ownedBy("MachinePool"))},
		Connection: workload.Health{Connected: true, LastProbeSuccess: ago(time.Second)},
	}
	s.Cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// fresh is a Cluster that has just been created, and has nothing yet.
func fresh(changes ...func(*snapshot)) snapshot {
	return settled(append([]func(*snapshot){func(s *snapshot) {
		s.Infra, s.ControlPlane, s.Pools, s.Machines, s.Connection = contract.InfraClusterView{}, contract.ControlPlaneView{}, nil, nil, workload.Health{}
		s.Cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
		s.Cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{}
	}}, changes...)...)
}

func deleted(s *snapshot) { s.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }

func noControlPlaneRef(s *snapshot) {
	s.Cluster.Spec.ControlPlaneRef, s.ControlPlane = clusterv1.ContractVersionedObjectReference{}, contract.ControlPlaneView{}
}

func labels() map[string]string { return map[string]string{clusterv1.ClusterNameLabel: "c"} }

func pool(name string, conditions ...metav1.Condition) clusterv1.MachinePool {
	p := clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels()}}
	p.Spec.Replicas = ptr.To[int32](2)
	p.Status.Replicas, p.Status.ReadyReplicas, p.Status.AvailableReplicas, p.Status.UpToDateReplicas = ptr.To[int32](2), ptr.To[int32](1), ptr.To[int32](1), ptr.To[int32](2)
	p.Status.Versions = []clusterv1.StatusVersion{{Version: "v1.35.9", Replicas: 1}, {Version: "v1.36.0", Replicas: 1}}
	p.Status.Conditions = append([]metav1.Condition{is("Available", "True", "Available", ""), is("ScalingUp", "False", "NotScalingUp", ""),
		is("ScalingDown", "False", "NotScalingDown", "")}, conditions...)
	return p
}

func deployment(name string, conditions ...metav1.Condition) clusterv1.MachineDeployment {
	d := clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels()}}
	d.Spec.Replicas, d.Status.Replicas, d.Status.ReadyReplicas = ptr.To[int32](3), ptr.To[int32](3), ptr.To[int32](3)
	d.Status.AvailableReplicas, d.Status.UpToDateReplicas = ptr.To[int32](3), ptr.To[int32](3)
	d.Status.Versions = []clusterv1.StatusVersion{{Version: "v1.36.0", Replicas: 3}}
	d.Status.Conditions = conditions
	return d
}

func set(name string, conditions ...metav1.Condition) clusterv1.MachineSet {
	m := clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels()}}
	m.Spec.Replicas, m.Status.Replicas = ptr.To[int32](1), ptr.To[int32](1)
	m.Status.Conditions = conditions
	return m
}

func machine(name string, changes ...func(*clusterv1.Machine)) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels(), CreationTimestamp: metav1.NewTime(ago(time.Hour))}}
	m.Spec.Version = "v1.36.0"
	m.Status.Conditions = []metav1.Condition{is("Ready", "True", "Ready", ""), is("Available", "True", "Available", ""), is("UpToDate", "True", "UpToDate", "")}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func ownedBy(kind string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		m.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", UID: types.UID(kind), Controller: ptr.To(true)}}
	}
}

func ofControlPlane(m *clusterv1.Machine) { m.Labels[clusterv1.MachineControlPlaneLabel] = "" }

func withNode(m *clusterv1.Machine) { m.Status.NodeRef.Name = "n" }

func with(conditions ...metav1.Condition) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Status.Conditions = conditions }
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

func certificateAuthority(cert, key []byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-ca"}, Data: map[string][]byte{"tls.crt": cert, "tls.key": key}}
}
