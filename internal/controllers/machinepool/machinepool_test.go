package machinepool

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

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
func settled(changes ...func(*Snapshot)) Snapshot {
	s := Snapshot{
		Now: now,
		Pool: &clusterv1.MachinePool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "pool", Generation: 1, Labels: map[string]string{clusterv1.ClusterNameLabel: "c"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: "cluster"}}},
			Spec: clusterv1.MachinePoolSpec{ClusterName: "c", Replicas: ptr[int32](2), ProviderIDList: []string{"x://0", "x://1"}},
		},
		Cluster:   &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}},
		Bootstrap: bootstrap(`{dataSecretName: data, initialization: {dataSecretCreated: true}}`),
		Infra:     infra(provisioned),
		Nodes:     Nodes{Known: true, Items: map[string]corev1.Node{"x://0": node("n0", "x://0"), "x://1": node("n1", "x://1")}},
	}
	s.Pool.Status.ObservedGeneration = 1
	s.Cluster.Status.Initialization.ControlPlaneInitialized = ptr(true)
	template := &s.Pool.Spec.Template.Spec
	template.Version = "v1.36.0"
	template.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr("data"), ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: "FooConfig", Name: "b", APIGroup: "b"}}
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
func withMachines(s *Snapshot) {
	s.Infra = infra(`{initialization: {provisioned: true}, replicas: 2, infrastructureMachineKind: FooMachine}`)
	for _, name := range []string{"m0", "m1"} {
		s.InfraMachines = append(s.InfraMachines, object("kind: FooMachine\nmetadata: {name: "+name+"}", contract.V1Beta2))
	}
}

func machine(name, version string, conditions ...metav1.Condition) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "p", UID: "pool", Controller: ptr(true)},
	}}}
	m.Finalizers = []string{clusterv1.MachineFinalizer}
	m.Labels = map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"}
	m.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr[int32](10)
	m.Spec.Version, m.Status.Conditions = version, conditions
	return m
}

// atMost lets the pool have so many replicas.
func atMost(n int32) func(*Snapshot) {
	return func(s *Snapshot) { s.Policy.Maxima.Replicas = n }
}

const tooMany = "2 replicas are more than the 1 that one object may have: ask for less, or ask the operator to raise maxima.replicas in the configuration file (--config of slipway up or slipway manager)"

// running is a Machine of the pool as it should be.
func running(name string) clusterv1.Machine {
	return machine(name, "v1.36.0", metav1.Condition{Type: "UpToDate", Status: "True", Reason: "UpToDate"})
}

func is(t, status string) metav1.Condition {
	return metav1.Condition{Type: t, Status: metav1.ConditionStatus(status), Reason: t}
}

func deleted(s *Snapshot) { s.Pool.DeletionTimestamp = ptr(metav1.NewTime(now)) }

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

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		reason string
		s      Snapshot
		want   []string
	}{
		"settled":    {"nothing to do", settled(), nil},
		"no cluster": {"the pool waits for its Cluster", settled(func(s *Snapshot) { s.Cluster = nil }), []string{"wait: Waiting for Cluster c to be created"}},
		"not joined": {"MP-01: owner and label first", settled(func(s *Snapshot) { s.Pool.OwnerReferences = nil }), []string{"do: join Cluster c"}},
		"restored": {"OR-01: the owner's UID is that of the Cluster that exists now",
			settled(func(s *Snapshot) { s.Pool.OwnerReferences[0].UID = "old" }), []string{"do: join Cluster c"}},
		"joined in an older version": {"nothing collects it once that is gone",
			settled(func(s *Snapshot) { s.Pool.OwnerReferences[0].APIVersion = "cluster.x-k8s.io/v1beta1" }), []string{"do: join Cluster c"}},
		"references missing": {"MP-02", settled(func(s *Snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
		}),
			[]string{"wait: Waiting for FooConfig b to be created", "wait: Waiting for FooPool i to be created"}},
		"references not owned": {"MP-02: both become the pool's", settled(func(s *Snapshot) {
			s.Infra.SetOwnerReferences(nil)
			s.Bootstrap.SetLabels(nil)
		}), []string{"do: own FooConfig b: it is the MachinePool's bootstrap config", "do: own FooPool i: it is the MachinePool's infrastructure"}},
		"kind missing": {"CT-04: what a person has to do", settled(func(s *Snapshot) {
			s.Infra = contract.InfraMachinePool(contract.Object{Problem: "install the provider"})
		}), []string{"wait: install the provider"}},
		"data secret": {"MP-02: the name is taken over", settled(func(s *Snapshot) { s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil }),
			[]string{"do: take over what bootstrap and infrastructure report"}},
		"data secret rotated": {"MP-02, KB-11: and taken over again", settled(func(s *Snapshot) {
			s.Bootstrap = bootstrap(`{dataSecretName: other, initialization: {dataSecretCreated: true}}`)
		}), []string{"do: take over what bootstrap and infrastructure report"}},
		"data secret without a name": {"MP-02: nothing to take over", settled(func(s *Snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			s.Bootstrap = bootstrap(`{initialization: {dataSecretCreated: true}}`)
		}), []string{"wait: Waiting for FooConfig b to set status.dataSecretName: it reports status.initialization.dataSecretCreated"}},
		"unreadable data secret": {"said, and the last one stays", settled(func(s *Snapshot) {
			s.Bootstrap = bootstrap(`{dataSecretName: [x], initialization: {dataSecretCreated: true}}`)
		}), []string{"wait: FooConfig b reports what its contract does not allow: field status.dataSecretName: want string, have array"}},
		"unreadable list": {"no Node is deleted for it", settled(func(s *Snapshot) {
			s.Infra = infraOf(contract.V1Beta2, `spec: {providerIDList: [""]}`, `{ready: true, replicas: 0}`)
			s.Nodes.Retired = []corev1.Node{node("n9", "x://9")}
		}), []string{"wait: FooPool i reports what its contract does not allow: field spec.providerIDList: item 0 is empty"}},
		"kind of the machines missing": {"X15: Machines are neither made nor removed", settled(withMachines, func(s *Snapshot) {
			s.Machines, s.InfraMachines, s.Infra.Problem = []clusterv1.Machine{running("m0")}, nil, "install FooMachine"
		}), []string{"wait: install FooMachine"}},
		"label of the template": {"MP-07: Machines follow in place", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Labels["a"] = "b"
			s.Pool.Spec.Template.Labels = map[string]string{"a": "b"}
		}), []string{"do: sync Machine m1: it is not what the template and its Node say"}},
		"label of the template removed": {"MP-07: what the pool applied and does not want any more", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Labels["a"], s.Machines[1].Labels["theirs"] = "b", "c"
			s.Machines[0].ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:a":{}}}}`),
			}}
		}), []string{"do: sync Machine m0: it is not what the template and its Node say"}},
		"timeouts of a deletion": {"MP-07: a drain that hangs can be given a timeout", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].DeletionTimestamp, s.Machines[0].Labels = ptr(metav1.NewTime(now)), nil
			s.Machines[1].Spec.Deletion.NodeDrainTimeoutSeconds = ptr[int32](60)
			s.Pool.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr[int32](60)
		}), []string{"do: sync Machine m0: the timeouts of its deletion changed"}},
		"vendor's version": {"MP-11: a suffix is no other version", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Spec.Version = "v1.36.0-eks-5e0fdde"
		}), nil},
		"nonsense for a version": {"a workload cluster may say anything", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "no version"}
			s.Machines[0].Status.Conditions = []metav1.Condition{{Type: "UpToDate", Status: "False", Reason: "NotUpToDate", Message: "* Version no version, v1.36.0 required"}}
		}), nil},
		"more than allowed": {"the operator says how many there may be", settled(withMachines, atMost(1), func(s *Snapshot) {
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "autoscaler"}
			s.Pool.Spec.Replicas = ptr[int32](1)
		}), []string{"do: create Machine m0 for its FooMachine", "wait: " + tooMany}},
		"data not created": {"MP-02", settled(func(s *Snapshot) { s.Bootstrap = bootstrap(`{}`) }), []string{"wait: Waiting for FooConfig b to report status.initialization.dataSecretCreated"}},
		"provider IDs":     {"MP-04", settled(func(s *Snapshot) { s.Pool.Spec.ProviderIDList = nil }), []string{"do: take over what bootstrap and infrastructure report"}},
		"no provider IDs yet": {"MP-04: replicas without provider IDs", settled(func(s *Snapshot) {
			s.Infra = infraOf(contract.V1Beta2, "spec: {}", provisioned)
		}), []string{"wait: Waiting for FooPool i to set spec.providerIDList: it reports 2 replicas"}},
		"scaled to zero": {"MP-04: an empty list is right for no replicas", settled(func(s *Snapshot) {
			s.Infra = infraOf(contract.V1Beta2, "spec: {}", `{ready: true, replicas: 0}`)
			s.Nodes.Items = nil
		}), []string{"do: take over what bootstrap and infrastructure report"}},
		"scaled by others": {"MP-09: the infrastructure says how many", settled(func(s *Snapshot) {
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "autoscaler"}
			s.Pool.Spec.Replicas = ptr[int32](5)
		}), []string{"do: take over what bootstrap and infrastructure report"}},
		"scaled by us": {"MP-09: the value false means nobody else", settled(func(s *Snapshot) {
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "false"}
			s.Pool.Spec.Replicas = ptr[int32](5)
		}), nil},
		"node not marked": {"MP-05", settled(func(s *Snapshot) {
			n := s.Nodes.Items["x://1"]
			n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint}
			s.Nodes.Items["x://1"] = n
		}), []string{"do: mark Node n1 as one of the pool"}},
		"retired node":     {"MP-05", settled(func(s *Snapshot) { s.Nodes.Retired = []corev1.Node{node("n9", "x://9")} }), []string{"do: delete Node n9: its provider ID left the pool"}},
		"nodes not known":  {"a lost connection deletes nothing", settled(func(s *Snapshot) { s.Nodes = Nodes{Problem: "no"} }), nil},
		"machines missing": {"MP-07, IP2-03", settled(withMachines), []string{"do: create Machine m0 for its FooMachine", "do: create Machine m1 for its FooMachine"}},
		"machine of nothing": {"MP-07: the instance is gone", settled(withMachines, func(s *Snapshot) {
			s.InfraMachines = s.InfraMachines[:1]
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0", metav1.Condition{Type: "UpToDate", Status: "True", Reason: "UpToDate"}), machine("m1", "v1.36.0")}
		}), []string{"do: delete Machine m1: its infrastructure machine is gone"}},
		"machines without owner": {"OR-01: a restore loses it; earlier lives and versions count as none", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.3"), machine("m1", "v1.36.3")}
			s.Machines[0].OwnerReferences, s.Machines[1].OwnerReferences[0].UID = nil, "earlier"
		}), []string{"do: adopt Machine m0: it has the labels of the pool, and no owner", "do: adopt Machine m1: it has the labels of the pool, and no owner"}},
		"machine judged": {"MA-24: the owner says whether a Machine is up to date", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0"), machine("m1", "v1.35.0")}
		}), []string{"do: set condition UpToDate of Machine m0 to True: UpToDate", "do: set condition UpToDate of Machine m1 to False: NotUpToDate"}},
		"version from node": {"MP-07: the Machine shows what its Node runs", settled(withMachines, func(s *Snapshot) {
			m := machine("m0", "v1.35.0")
			m.Spec.ProviderID = "x://0"
			s.Machines, s.InfraMachines = []clusterv1.Machine{m}, s.InfraMachines[:1]
		}), []string{"do: sync Machine m0: it is not what the template and its Node say"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Decide(tc.s)
			if diff := cmp.Diff(tc.want, texts(p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, w := range p.Waits {
				if len(w.On) == 0 || w.Until == "" {
					t.Errorf("what is waited for, and what ends it, is not said: %+v", w)
				}
			}
		})
	}
}

func TestDecideDeletion(t *testing.T) { // MP-14
	cases := map[string]struct {
		reason string
		s      Snapshot
		want   []string
	}{
		"infrastructure and machines first": {"", settled(deleted, withMachines, func(s *Snapshot) { s.Machines = []clusterv1.Machine{machine("m0", "")} }),
			[]string{"do: delete FooPool i: the MachinePool is deleted", "do: delete Machine m0: the pool is deleted", "wait: Waiting for FooPool i to be deleted", "wait: Waiting for the Machines of the pool to be deleted: m0"}},
		"timeouts": {"MP-07: they follow while Machines are deleted", settled(deleted, withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{running("m0")}
			s.Machines[0].DeletionTimestamp = s.Pool.DeletionTimestamp
			s.Pool.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr[int32](1)
			s.Infra = contract.InfraMachinePoolView{}
		}), []string{"do: sync Machine m0: the timeouts of its deletion changed", "wait: Waiting for the Machines of the pool to be deleted: m0"}},
		"then bootstrap": {"", settled(deleted, func(s *Snapshot) { s.Infra = contract.InfraMachinePoolView{} }),
			[]string{"do: delete FooConfig b: the MachinePool is deleted", "wait: Waiting for FooConfig b to be deleted"}},
		"then nodes": {"", settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
		}),
			[]string{"do: delete Node n0: the pool is deleted", "do: delete Node n1: the pool is deleted"}},
		"infrastructure unreadable": {"it may still be there", settled(deleted, func(s *Snapshot) { s.Infra = contract.InfraMachinePool(contract.Object{Problem: "label its CRD"}) }), []string{"wait: label its CRD"}},
		"bootstrap unreadable": {"", settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfig(contract.Object{Problem: "label its CRD"})
		}), []string{"wait: label its CRD"}},
		"nodes unreachable": {"until the timeout", settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap, s.Nodes = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}, Nodes{Problem: "no answer"}
			s.Pool.Status.NodeRefs = []corev1.ObjectReference{{Name: "n0"}}
		}), []string{"wait: Nodes of the pool cannot be deleted: no answer"}},
		"timeout": {"the pool goes although Nodes stay", settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
			s.Now = now.Add(11 * time.Second)
		}), nil},
		"no timeout": {"0 waits for ever", settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
			s.Pool.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr[int32](0)
			s.Now = now.Add(time.Hour)
		}), []string{"do: delete Node n0: the pool is deleted", "do: delete Node n1: the pool is deleted"}},
		"cluster goes too": {"its Nodes go with it", settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
			s.Cluster.DeletionTimestamp = s.Pool.DeletionTimestamp
		}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Decide(tc.s)
			if diff := cmp.Diff(tc.want, texts(p)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, w := range p.Waits {
				if len(w.On) == 0 || w.Until == "" {
					t.Errorf("what is waited for, and what ends it, is not said: %+v", w)
				}
			}
		})
	}
}

func TestUnreadableIsLookedAtAgain(t *testing.T) { // MP-14
	for _, p := range []reconciler.Plan{
		Decide(settled(deleted, func(s *Snapshot) { s.Infra = contract.InfraMachinePool(contract.Object{Problem: "label its CRD"}) })),
		Decide(settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfig(contract.Object{Problem: "label its CRD"})
		})),
	} {
		if p.Recheck != 30*time.Second {
			t.Errorf("again in %s: nobody watches a kind that cannot be read", p.Recheck)
		}
	}
}

func TestConditions(t *testing.T) { // MP-12
	type wants = map[string]string
	cases := map[string]struct {
		reason string
		s      Snapshot
		want   wants // "Type": "Status Reason[: message]"
	}{
		"settled": {"all nine are there", settled(), wants{
			"Available": "True Available", "BootstrapConfigReady": "True Ready", "InfrastructureReady": "True Ready",
			"MachinesReady": "True Ready", "MachinesUpToDate": "True UpToDate", "ScalingUp": "False NotScalingUp",
			"ScalingDown": "False NotScalingDown", "Remediating": "False NotRemediating", "Deleting": "False NotDeleting",
		}},
		"nothing yet": {"", settled(func(s *Snapshot) {
			s.Infra, s.Bootstrap, s.Nodes = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}, Nodes{}
		}), wants{
			"Available":            "False NotAvailable: * BootstrapConfigReady: FooConfig does not exist\n* InfrastructureReady: FooPool does not exist",
			"BootstrapConfigReady": "False ObjectDoesNotExist: FooConfig does not exist", "InfrastructureReady": "False ObjectDoesNotExist: FooPool does not exist",
			"MachinesReady": "True NoReplicas", "ScalingUp": "True ScalingUp: Scaling up from 0 to 2 replicas",
		}},
		"no Cluster": {"nothing else matters", settled(func(s *Snapshot) { s.Cluster = nil }), wants{
			"Available": "False NotAvailable: Cluster c does not exist: create it, or delete MachinePool p"}},
		"IP2-07 mirrored": {"Ready of the infrastructure is the pool's InfrastructureReady", settled(func(s *Snapshot) {
			s.Infra = infra(`{ready: true, replicas: 2, conditions: [{type: Ready, status: "False", reason: NoQuota, message: ask for more}]}`)
		}), wants{"InfrastructureReady": "False NoQuota: ask for more", "Available": "False NotAvailable: * InfrastructureReady: ask for more"}},
		"no bootstrap data": {"what is missing first is said first", settled(func(s *Snapshot) {
			s.Bootstrap, s.Infra = contract.BootstrapConfigView{}, infra(`{ready: false, conditions: [{type: Ready, status: "False", reason: Waits, message: waiting}]}`)
			s.Pool.Status.Initialization.BootstrapDataSecretCreated = ptr(true)
		}), wants{"Available": "False NotAvailable: * BootstrapConfigReady: FooConfig b has been deleted while it was in use: restore it, or delete MachinePool p\n* InfrastructureReady: waiting"}},
		"bootstrap data lost": {"no further machine can join", settled(func(s *Snapshot) {
			s.Bootstrap, s.Pool.Spec.Replicas = contract.BootstrapConfigView{}, ptr[int32](3)
			s.Pool.Status.Initialization.BootstrapDataSecretCreated = ptr(true)
		}), wants{"Available": "False NotAvailable: FooConfig b has been deleted while it was in use: restore it, or delete MachinePool p\n2 available replicas, at least 3 required"}},
		"CT-07 invalid": {"", settled(func(s *Snapshot) {
			s.Infra = infra(`{ready: true, conditions: [{type: Ready, status: maybe}]}`)
		}), wants{"InfrastructureReady": `Unknown InvalidConditionReported: field status.conditions[Ready]: status is "maybe", want True, False or Unknown`}},
		"infrastructure deleted": {"", settled(func(s *Snapshot) {
			s.Infra = contract.InfraMachinePoolView{}
			s.Pool.Status.Initialization.InfrastructureProvisioned = ptr(true)
		}), wants{"InfrastructureReady": "False ObjectDeleted: FooPool i has been deleted while it was in use: restore it, or delete MachinePool p"}},
		"kind missing": {"", settled(func(s *Snapshot) { s.Infra = contract.InfraMachinePool(contract.Object{Problem: "install it"}) }), wants{"InfrastructureReady": "Unknown InternalError: install it"}},
		"secret provided": {"", settled(func(s *Snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{}
		}), wants{"BootstrapConfigReady": "True DataSecretProvided"}},
		"more than allowed": {"", settled(atMost(1)), wants{"ScalingUp": "True ScalingUp: " + tooMany}},
		"scaling down": {"", settled(func(s *Snapshot) { s.Pool.Spec.Replicas = ptr[int32](1) }), wants{
			"ScalingDown": "True ScalingDown: Scaling down from 2 to 1 replicas", "ScalingUp": "False NotScalingUp"}},
		"replicas unset": {"", settled(func(s *Snapshot) { s.Pool.Spec.Replicas = nil }), wants{
			"Available": "Unknown WaitingForReplicasSet: Waiting for spec.replicas to be set; until then the desired number of replicas is unknown", "ScalingUp": "Unknown WaitingForReplicasSet: Waiting for spec.replicas to be set; until then the desired number of replicas is unknown", "ScalingDown": "Unknown WaitingForReplicasSet: Waiting for spec.replicas to be set; until then the desired number of replicas is unknown"}},
		"node not ready": {"", settled(func(s *Snapshot) {
			n := s.Nodes.Items["x://0"]
			n.Status.Conditions = nil
			s.Nodes.Items["x://0"] = n
		}), wants{"MachinesReady": "False NotReady: Node n0 is not ready", "Available": "False NotAvailable: 1 available replicas, at least 2 required"}},
		"not connected": {"", settled(func(s *Snapshot) { s.Nodes = Nodes{Problem: "the workload cluster is not connected"} }), wants{
			"MachinesReady": "Unknown ReadyUnknown: the workload cluster is not connected", "MachinesUpToDate": "Unknown UpToDateUnknown: the workload cluster is not connected"}},
		"nodes of a vendor": {"MP-12: of the version, with a suffix", settled(func(s *Snapshot) {
			for id, n := range s.Nodes.Items {
				n.Status.NodeInfo.KubeletVersion = "v1.36.0-gke.1"
				s.Nodes.Items[id] = n
			}
		}), wants{"MachinesUpToDate": "True UpToDate"}},
		"machines of a vendor": {"MP-12", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0-eks-5e0fdde"), machine("m1", "v1.36.0+x")}
		}), wants{"MachinesUpToDate": "True UpToDate"}},
		"unnamed secret": {"B10d: it says created, and not what", settled(func(s *Snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			s.Bootstrap = bootstrap(`{initialization: {dataSecretCreated: true}, conditions: [{type: Ready, status: "True"}]}`)
		}), wants{"BootstrapConfigReady": "False NotReady: Waiting for FooConfig b to set status.dataSecretName: it reports status.initialization.dataSecretCreated"}},
		"machine kind missing": {"X15", settled(withMachines, func(s *Snapshot) { s.Infra.Problem = "install FooMachine" }), wants{
			"InfrastructureReady": "Unknown InternalError: install FooMachine", "Available": "Unknown AvailableUnknown: * InfrastructureReady: install FooMachine"}},
		"nonsense": {"CT-07: what cannot be read is said", settled(func(s *Snapshot) { s.Infra = infra(`{ready: true, replicas: -3}`) }), wants{
			"InfrastructureReady": "Unknown InternalError: FooPool i reports what its contract does not allow: field status.replicas: want 0 or more, have -3"}},
		"failures": {"M52, B14: of either contract, where no condition says more", settled(func(s *Snapshot) {
			s.Infra = infra(`{failureReason: InvalidConfiguration, failureMessage: no such type}`)
			s.Bootstrap = bootstrap(`{failureMessage: "no template"}`)
		}), wants{
			"InfrastructureReady":  "False NotReady: FooPool status.initialization.provisioned is false, and it reports a failure: InvalidConfiguration: no such type",
			"BootstrapConfigReady": "False NotReady: FooConfig status.initialization.dataSecretCreated is false, and it reports a failure: no template"}},
		"not watched": {"PA-02: their providers may not see them", settled(func(s *Snapshot) {
			s.Pool.Labels = map[string]string{clusterv1.WatchLabel: "blue"}
			s.Infra, s.Bootstrap = infra(`{}`), bootstrap(`{}`)
		}), wants{
			"InfrastructureReady":  "False NotReady: FooPool status.initialization.provisioned is false; it lacks the label cluster.x-k8s.io/watch-filter=blue: set it if its provider runs with --watch-filter",
			"BootstrapConfigReady": "False NotReady: FooConfig status.initialization.dataSecretCreated is false; it lacks the label cluster.x-k8s.io/watch-filter=blue: set it if its provider runs with --watch-filter"}},
		"old nodes": {"", settled(func(s *Snapshot) { s.Pool.Spec.Template.Spec.Version = "v1.37.0" }), wants{
			"MachinesUpToDate": "False NotUpToDate: Nodes n0 (v1.36.0), n1 (v1.36.0) are not of version v1.37.0"}},
		"machines": {"aggregated from Machines where there are some", settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{
				machine("m0", "v1.36.0", is("Ready", "True"), is("Available", "True")),
				machine("m1", "v1.35.0", metav1.Condition{Type: "Ready", Status: "False", Reason: "NotReady", Message: "* NodeHealthy: disk"},
					metav1.Condition{Type: "OwnerRemediated", Status: "False", Reason: "WaitingForRemediation", Message: "waiting"}),
			}
		}), wants{
			"MachinesReady":    "False NotReady: * Machine m1:\n  * NodeHealthy: disk",
			"MachinesUpToDate": "False NotUpToDate: * Machine m1:\n  * Version v1.35.0, v1.36.0 required",
			"Remediating":      "True Remediating: * Machine m1: waiting",
			"Available":        "False NotAvailable: 1 available replicas, at least 2 required",
		}},
		"deleting": {"", settled(deleted), wants{
			"Deleting": "True WaitingForInfrastructureDeletion: * Waiting for FooPool i to be deleted", "Available": "False NotAvailable: Deletion in progress",
			"ScalingDown": "True ScalingDown: Scaling down from 2 to 0 replicas"}},
		"deleted": {"", settled(deleted, func(s *Snapshot) {
			s.Infra, s.Bootstrap, s.Nodes = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}, Nodes{Known: true}
		}), wants{"Deleting": "True DeletionCompleted"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := Report(tc.s, Decide(tc.s), reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus)
			if len(status.Conditions) != 9 {
				t.Errorf("%d conditions, want all nine", len(status.Conditions))
			}
			for conditionType, want := range tc.want {
				c := condition.Set(status.Conditions).Get(conditionType)
				got := string(c.Status) + " " + c.Reason
				if c.Message != "" {
					got += ": " + c.Message
				}
				if got != want {
					t.Errorf("%s: %s\n got %s\nwant %s", tc.reason, conditionType, got, want)
				}
			}
		})
	}
}

func TestPhase(t *testing.T) { // MP-10
	cases := map[string]struct {
		s    Snapshot
		want clusterv1.MachinePoolPhase
	}{
		"Pending": {settled(func(s *Snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			s.Bootstrap = bootstrap(`{}`)
		}), "Pending"},
		"Provisioning": {settled(func(s *Snapshot) { s.Infra = infra(`{}`) }), "Provisioning"},
		"Running":      {settled(), "Running"},
		"ScalingUp":    {settled(func(s *Snapshot) { s.Pool.Spec.Replicas = ptr[int32](3) }), "ScalingUp"},
		"ScalingDown":  {settled(func(s *Snapshot) { s.Pool.Spec.Replicas = ptr[int32](1) }), "ScalingDown"},
		"Scaling": {settled(func(s *Snapshot) {
			s.Pool.Spec.Replicas = ptr[int32](3)
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: ""}
		}), "Scaling"},
		"Provisioned": {settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "", is("Ready", "True")), machine("m1", "", is("Ready", "True"))}
			s.Nodes.Items = nil
		}), "Provisioned"},
		"Deleting": {settled(deleted), "Deleting"},
	}
	for name, tc := range cases {
		status := Report(tc.s, Decide(tc.s), reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus)
		if status.Phase != string(tc.want) {
			t.Errorf("%s: got %s", name, status.Phase)
		}
	}
}

func TestStatus(t *testing.T) {
	report := func(s Snapshot) clusterv1.MachinePoolStatus {
		return Report(s, Decide(s), reconciler.Outcome{}).Status.(clusterv1.MachinePoolStatus)
	}
	t.Run("MP-05 nodeRefs in the order of the provider IDs", func(t *testing.T) {
		var names []string
		for _, ref := range report(settled()).NodeRefs {
			names = append(names, ref.Name)
		}
		if diff := cmp.Diff([]string{"n0", "n1"}, names); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("MP-05 a lost connection keeps the nodeRefs", func(t *testing.T) {
		s := settled(func(s *Snapshot) {
			s.Nodes = Nodes{Problem: "no"}
			s.Pool.Status.NodeRefs = []corev1.ObjectReference{{Name: "n0"}}
		})
		if got := report(s).NodeRefs; len(got) != 1 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("MP-03 either readiness field will do", func(t *testing.T) {
		for _, text := range []string{`{initialization: {provisioned: true}}`, `{ready: true}`} {
			s := settled(func(s *Snapshot) { s.Infra = infra(text) })
			if !isTrue(report(s).Initialization.InfrastructureProvisioned) {
				t.Errorf("%s: not provisioned", text)
			}
		}
	})
	t.Run("provisioned is never taken back", func(t *testing.T) {
		s := settled(func(s *Snapshot) {
			s.Infra = infra(`{}`)
			s.Pool.Status.Initialization.InfrastructureProvisioned = ptr(true)
		})
		if !isTrue(report(s).Initialization.InfrastructureProvisioned) {
			t.Error("it was")
		}
	})
	t.Run("MP-11 counters from Machines", func(t *testing.T) {
		s := settled(withMachines, func(s *Snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0", is("Ready", "True"), is("Available", "True")), machine("m1", "v1.35.0", is("Ready", "True"))}
		})
		got := report(s)
		if *got.Replicas != 2 || *got.ReadyReplicas != 2 || *got.AvailableReplicas != 1 || *got.UpToDateReplicas != 1 {
			t.Errorf("%d %d %d %d", *got.Replicas, *got.ReadyReplicas, *got.AvailableReplicas, *got.UpToDateReplicas)
		}
		if diff := cmp.Diff([]clusterv1.StatusVersion{{Version: "v1.35.0", Replicas: 1}, {Version: "v1.36.0", Replicas: 1}}, got.Versions); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("MP-11, TP-29: counters and versions from Nodes", func(t *testing.T) {
		got := report(settled())
		if *got.ReadyReplicas != 2 || *got.AvailableReplicas != 2 || *got.UpToDateReplicas != 2 || got.Versions[0] != (clusterv1.StatusVersion{Version: "v1.36.0", Replicas: 2}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("MP-11 Nodes of a vendor", func(t *testing.T) {
		got := report(settled(func(s *Snapshot) {
			n := s.Nodes.Items["x://0"]
			n.Status.NodeInfo.KubeletVersion = "v1.36.0-eks-5e0fdde"
			s.Nodes.Items["x://0"] = n
		}))
		if *got.UpToDateReplicas != 2 || len(got.Versions) != 2 {
			t.Errorf("a suffix is no other version, and is shown: %+v", got)
		}
	})
	t.Run("nonsense freezes nothing", func(t *testing.T) {
		got := report(settled(func(s *Snapshot) {
			s.Infra = infraOf(contract.V1Beta2, `spec: {providerIDList: [""]}`, `{ready: true, replicas: -3}`)
			s.Pool.Status.Replicas = ptr[int32](2)
		}))
		if *got.Replicas != 2 || len(got.NodeRefs) != 2 {
			t.Errorf("what was known stays: %+v", got)
		}
	})
	t.Run("MP-13 failures are copied", func(t *testing.T) {
		s := settled(func(s *Snapshot) {
			s.Infra = infraOf(contract.V1Beta1, "spec: {}", `{failureReason: InvalidConfiguration, failureMessage: "no such type"}`)
		})
		v1 := report(s).Deprecated.V1Beta1
		if v1.FailureReason == nil || *v1.FailureReason != "InvalidConfiguration" || *v1.FailureMessage != "Failure detected from FooPool i: no such type" {
			t.Errorf("%+v", v1)
		}
		for _, version := range contract.Versions() { // the config's where the infrastructure has none; M52, B14: of either contract
			s := settled(func(s *Snapshot) {
				b := contract.BootstrapConfig(object("{metadata: {name: b}, status: {failureReason: Bad, failureMessage: "+strings.Repeat("é", 6000)+"}}", version))
				s.Bootstrap = b
			})
			v1 := report(s).Deprecated.V1Beta1
			if v1.FailureReason == nil || *v1.FailureReason != "Bad" || *v1.FailureMessage != "Failure detected from FooConfig b: "+strings.Repeat("é", 5102) {
				t.Errorf("%s: the API takes 10240 bytes: %+v", version, v1)
			}
			s.Infra = infraOf(version, "spec: {}", `{failureReason: Worse}`)
			if v1 := report(s).Deprecated.V1Beta1; *v1.FailureReason != "Worse" || v1.FailureMessage != nil {
				t.Errorf("%s: %+v", version, v1)
			}
		}
		if v1 := report(settled()).Deprecated.V1Beta1; v1.FailureReason != nil || v1.FailureMessage != nil {
			t.Errorf("no failure, none copied: %+v", v1)
		}
	})
	t.Run("CO-02 v1beta1 conditions", func(t *testing.T) {
		var got []string
		for _, c := range report(settled()).Deprecated.V1Beta1.Conditions {
			got = append(got, string(c.Type)+" "+string(c.Status))
		}
		if diff := cmp.Diff([]string{"Ready True", "BootstrapReady True", "InfrastructureReady True", "ReplicasReady True"}, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("observedGeneration stays while a pass fails", func(t *testing.T) { // CL-28
		s := settled(func(s *Snapshot) { s.Pool.Generation = 7 })
		failed := Report(s, Decide(s), reconciler.Outcome{Err: cmpError("no")}).Status.(clusterv1.MachinePoolStatus)
		if failed.ObservedGeneration != 1 || report(s).ObservedGeneration != 7 {
			t.Error("it moved, or did not")
		}
	})
}

type cmpError string

func (e cmpError) Error() string { return string(e) }

func TestNewMachine(t *testing.T) { // MP-07
	s := settled(withMachines, func(s *Snapshot) {
		s.Pool.Spec.Template.Labels = map[string]string{"a": "b"}
		s.Pool.Spec.FailureDomains = []string{"one"} // MP-17: the infrastructure's to use, not the Machines'
	})
	m := newMachine(s, createMachine{Name: "m0", Kind: "FooMachine"})
	if m.Name != "m0" || *m.Spec.Bootstrap.DataSecretName != "" || m.Spec.Bootstrap.ConfigRef.Name != "" || m.Spec.FailureDomain != "" {
		t.Errorf("%+v", m.Spec)
	}
	if owner := metav1.GetControllerOf(m); owner == nil || owner.UID != "pool" {
		t.Errorf("owner %v", owner)
	}
	want := map[string]string{"a": "b", clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"}
	if diff := cmp.Diff(want, m.Labels); diff != "" {
		t.Error(diff)
	}
	if m.Spec.InfrastructureRef != (clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "FooMachine", Name: "m0"}) {
		t.Errorf("%+v", m.Spec.InfrastructureRef)
	}
}

func TestMark(t *testing.T) { // MP-05, MA-11
	s := settled(func(s *Snapshot) {
		s.Pool.Spec.Template.Labels = map[string]string{"node-role.kubernetes.io/worker": "", "x.node.cluster.x-k8s.io/a": "1", "private": "no"}
	})
	n := corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint, {Key: "mine", Effect: "NoSchedule"}}}}
	mark(s, &n)
	if diff := cmp.Diff(map[string]string{"node-role.kubernetes.io/worker": "", "x.node.cluster.x-k8s.io/a": "1"}, n.Labels); diff != "" {
		t.Error(diff)
	}
	if len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != "mine" {
		t.Errorf("only our taint goes: %v", n.Spec.Taints)
	}
	n.Labels["private"], n.Labels["node-role.kubernetes.io/other"] = "another's", ""
	s.Pool.Spec.Template.Labels = map[string]string{"x.node.cluster.x-k8s.io/a": "2", "extra.example/b": "3"}
	s.SyncLabels = []*regexp.Regexp{regexp.MustCompile(`^extra[.]example/`)}
	if isMarked(s, &n) {
		t.Error("the template has other labels, and the Node counts as marked")
	}
	mark(s, &n)
	want := map[string]string{"x.node.cluster.x-k8s.io/a": "2", "extra.example/b": "3", "private": "another's", "node-role.kubernetes.io/other": ""}
	if diff := cmp.Diff(want, n.Labels); diff != "" {
		t.Errorf("what the template dropped goes, and nothing else (-want +got):\n%s", diff)
	}
	if !isMarked(s, &n) {
		t.Error("it is marked once more without a need")
	}
	if n.Annotations[clusterv1.OwnerKindAnnotation] != "MachinePool" || n.Annotations[clusterv1.OwnerNameAnnotation] != "p" {
		t.Errorf("%v", n.Annotations)
	}
}

func TestNodesAreCounted(t *testing.T) {
	for n, want := range map[int]string{0: "0 Nodes", 1: "1 Node", 12: "12 Nodes"} {
		if got := nodes(n).Message; got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
