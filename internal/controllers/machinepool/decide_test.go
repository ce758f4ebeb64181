package machinepool

import (
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/sdk/contract"
)

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		reason string
		s      snapshot
		want   []string
	}{
		"settled":    {"nothing to do", settled(), nil},
		"no cluster": {"the pool waits for its Cluster", settled(func(s *snapshot) { s.Cluster = nil }), []string{"wait: Waiting for Cluster c to be created"}},
		"not joined": {"MP-01: owner and label first", settled(func(s *snapshot) { s.Pool.OwnerReferences = nil }), []string{"do: join Cluster c"}},
		"restored": {"OR-01: the owner's UID is that of the Cluster that exists now",
			settled(func(s *snapshot) { s.Pool.OwnerReferences[0].UID = "old" }), []string{"do: join Cluster c"}},
		"joined in an older version": {"nothing collects it once that is gone",
			settled(func(s *snapshot) { s.Pool.OwnerReferences[0].APIVersion = "cluster.x-k8s.io/v1beta1" }), []string{"do: join Cluster c"}},
		"references missing": {"MP-02", settled(func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
		}),
			[]string{"wait: Waiting for FooConfig b to be created", "wait: Waiting for FooPool i to be created"}},
		"references not owned": {"MP-02: both become the pool's", settled(func(s *snapshot) {
			s.Infra.SetOwnerReferences(nil)
			s.Bootstrap.SetLabels(nil)
		}), []string{"do: own FooConfig b: it is the MachinePool's bootstrap config", "do: own FooPool i: it is the MachinePool's infrastructure"}},
		"kind missing": {"CT-04: what a person has to do", settled(func(s *snapshot) {
			s.Infra = contract.InfraMachinePool(contract.Object{Problem: "install the provider"})
		}), []string{"wait: install the provider"}},
		"data secret": {"MP-02: the name is taken over", settled(func(s *snapshot) { s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil }),
			[]string{"do: copy the results of bootstrap and infrastructure"}},
		"data secret rotated": {"MP-02, KB-11: and taken over again", settled(func(s *snapshot) {
			s.Bootstrap = bootstrap(`{dataSecretName: other, initialization: {dataSecretCreated: true}}`)
		}), []string{"do: copy the results of bootstrap and infrastructure"}},
		"data secret without a name": {"MP-02: nothing to take over", settled(func(s *snapshot) {
			s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil
			s.Bootstrap = bootstrap(`{initialization: {dataSecretCreated: true}}`)
		}), []string{"wait: Waiting for FooConfig b to set status.dataSecretName: it reports status.initialization.dataSecretCreated"}},
		"unreadable data secret": {"said, and the last one stays", settled(func(s *snapshot) {
			s.Bootstrap = bootstrap(`{dataSecretName: [x], initialization: {dataSecretCreated: true}}`)
		}), []string{"wait: FooConfig b reports what its contract does not allow: field status.dataSecretName: want string, have array"}},
		"unreadable list": {"no Node is deleted for it", settled(func(s *snapshot) {
			s.Infra = infraOf(contract.V1Beta2, `spec: {providerIDList: [""]}`, `{ready: true, replicas: 0}`)
			s.Nodes.Retired = []corev1.Node{node("n9", "x://9")}
		}), []string{"wait: FooPool i reports what its contract does not allow: field spec.providerIDList: item 0 is empty"}},
		"kind of the machines missing": {"X15: Machines are neither made nor removed", settled(withMachines, func(s *snapshot) {
			s.Machines, s.InfraMachines, s.Infra.Problem = []clusterv1.Machine{running("m0")}, nil, "install FooMachine"
		}), []string{"wait: install FooMachine"}},
		"label of the template": {"MP-07: Machines follow in place", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Labels["a"] = "b"
			s.Pool.Spec.Template.Labels = map[string]string{"a": "b"}
		}), []string{"do: sync Machine m1: it differs from the template or its Node"}},
		"label of the template removed": {"MP-07: what the pool applied and does not want any more", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Labels["a"], s.Machines[1].Labels["theirs"] = "b", "c"
			s.Machines[0].ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: fieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:a":{}}}}`),
			}}
		}), []string{"do: sync Machine m0: it differs from the template or its Node"}},
		"timeouts of a deletion": {"MP-07: a drain that hangs can be given a timeout", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].DeletionTimestamp, s.Machines[0].Labels = ptr.To(metav1.NewTime(now)), nil
			s.Machines[1].Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
			s.Pool.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
		}), []string{"do: sync Machine m0: the timeouts of its deletion changed"}},
		"vendor's version": {"MP-11: a suffix is no other version", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Spec.Version = "v1.36.0-eks-5e0fdde"
		}), nil},
		"nonsense for a version": {"a workload cluster may say anything", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{running("m0"), running("m1")}
			s.Machines[0].Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: "no version"}
			s.Machines[0].Status.Conditions = []metav1.Condition{{Type: "UpToDate", Status: "False", Reason: "NotUpToDate", Message: "* Version no version, v1.36.0 required"}}
		}), nil},
		"more than allowed": {"the operator says how many there may be", settled(withMachines, atMost(1), func(s *snapshot) {
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "autoscaler"}
			s.Pool.Spec.Replicas = ptr.To[int32](1)
		}), []string{"do: create Machine m0 for its FooMachine", "wait: " + tooMany}},
		"data not created": {"MP-02", settled(func(s *snapshot) { s.Bootstrap = bootstrap(`{}`) }), []string{"wait: Waiting for FooConfig b to report status.initialization.dataSecretCreated"}},
		"provider IDs":     {"MP-04", settled(func(s *snapshot) { s.Pool.Spec.ProviderIDList = nil }), []string{"do: copy the results of bootstrap and infrastructure"}},
		"no provider IDs yet": {"MP-04: replicas without provider IDs", settled(func(s *snapshot) {
			s.Infra = infraOf(contract.V1Beta2, "spec: {}", provisioned)
		}), []string{"wait: Waiting for FooPool i to set spec.providerIDList: it reports 2 replicas"}},
		"scaled to zero": {"MP-04: an empty list is right for no replicas", settled(func(s *snapshot) {
			s.Infra = infraOf(contract.V1Beta2, "spec: {}", `{ready: true, replicas: 0}`)
			s.Nodes.Items = nil
		}), []string{"do: copy the results of bootstrap and infrastructure"}},
		"scaled by others": {"MP-09: the infrastructure says how many", settled(func(s *snapshot) {
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "autoscaler"}
			s.Pool.Spec.Replicas = ptr.To[int32](5)
		}), []string{"do: copy the results of bootstrap and infrastructure"}},
		"scaled by us": {"MP-09: the value false means nobody else", settled(func(s *snapshot) {
			s.Pool.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "false"}
			s.Pool.Spec.Replicas = ptr.To[int32](5)
		}), nil},
		"node not marked": {"MP-05", settled(func(s *snapshot) {
			n := s.Nodes.Items["x://1"]
			n.Spec.Taints = []corev1.Taint{clusterv1.NodeUninitializedTaint}
			s.Nodes.Items["x://1"] = n
		}), []string{"do: mark Node n1 as one of the pool"}},
		"retired node":     {"MP-05", settled(func(s *snapshot) { s.Nodes.Retired = []corev1.Node{node("n9", "x://9")} }), []string{"do: delete Node n9: its provider ID left the pool"}},
		"nodes not known":  {"a lost connection deletes nothing", settled(func(s *snapshot) { s.Nodes = observedNodes{Problem: "no"} }), nil},
		"machines missing": {"MP-07, IP2-03", settled(withMachines), []string{"do: create Machine m0 for its FooMachine", "do: create Machine m1 for its FooMachine"}},
		"machine of nothing": {"MP-07: the instance is gone", settled(withMachines, func(s *snapshot) {
			s.InfraMachines = s.InfraMachines[:1]
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0", metav1.Condition{Type: "UpToDate", Status: "True", Reason: "UpToDate"}), machine("m1", "v1.36.0")}
		}), []string{"do: delete Machine m1: its infrastructure machine is gone"}},
		"machines without owner": {"OR-01: a restore loses it; earlier lives and versions count as none", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.3"), machine("m1", "v1.36.3")}
			s.Machines[0].OwnerReferences, s.Machines[1].OwnerReferences[0].UID = nil, "earlier"
		}), []string{"do: adopt Machine m0: it has the labels of the pool, and no owner", "do: adopt Machine m1: it has the labels of the pool, and no owner"}},
		"machine judged": {"MA-24: the owner says whether a Machine is up to date", settled(withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{machine("m0", "v1.36.0"), machine("m1", "v1.35.0")}
		}), []string{"do: set condition UpToDate of Machine m0 to True: UpToDate", "do: set condition UpToDate of Machine m1 to False: NotUpToDate"}},
		"version from node": {"MP-07: the Machine shows what its Node runs", settled(withMachines, func(s *snapshot) {
			m := machine("m0", "v1.35.0")
			m.Spec.ProviderID = "x://0"
			s.Machines, s.InfraMachines = []clusterv1.Machine{m}, s.InfraMachines[:1]
		}), []string{"do: sync Machine m0: it differs from the template or its Node"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
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
		s      snapshot
		want   []string
	}{
		"infrastructure and machines first": {"", settled(deleted, withMachines, func(s *snapshot) { s.Machines = []clusterv1.Machine{machine("m0", "")} }),
			[]string{"do: delete FooPool i: the MachinePool is deleted", "do: delete Machine m0: the pool is deleted", "wait: Waiting for FooPool i to be deleted", "wait: Waiting for the Machines of the pool to be deleted: m0"}},
		"timeouts": {"MP-07: they follow while Machines are deleted", settled(deleted, withMachines, func(s *snapshot) {
			s.Machines = []clusterv1.Machine{running("m0")}
			s.Machines[0].DeletionTimestamp = s.Pool.DeletionTimestamp
			s.Pool.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](1)
			s.Infra = contract.InfraMachinePoolView{}
		}), []string{"do: sync Machine m0: the timeouts of its deletion changed", "wait: Waiting for the Machines of the pool to be deleted: m0"}},
		"then bootstrap": {"", settled(deleted, func(s *snapshot) { s.Infra = contract.InfraMachinePoolView{} }),
			[]string{"do: delete FooConfig b: the MachinePool is deleted", "wait: Waiting for FooConfig b to be deleted"}},
		"then nodes": {"", settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
		}),
			[]string{"do: delete Node n0: the pool is deleted", "do: delete Node n1: the pool is deleted"}},
		"infrastructure unreadable": {"it may still be there", settled(deleted, func(s *snapshot) { s.Infra = contract.InfraMachinePool(contract.Object{Problem: "label its CRD"}) }), []string{"wait: label its CRD"}},
		"bootstrap unreadable": {"", settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfig(contract.Object{Problem: "label its CRD"})
		}), []string{"wait: label its CRD"}},
		"nodes unreachable": {"until the timeout", settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap, s.Nodes = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}, observedNodes{Problem: "no answer"}
			s.Pool.Status.NodeRefs = []corev1.ObjectReference{{Name: "n0"}}
		}), []string{"wait: Nodes of the pool cannot be deleted: no answer"}},
		"timeout": {"the pool goes although Nodes stay", settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
			s.Now = now.Add(11 * time.Second)
		}), nil},
		"no timeout": {"0 waits for ever", settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
			s.Pool.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
			s.Now = now.Add(time.Hour)
		}), []string{"do: delete Node n0: the pool is deleted", "do: delete Node n1: the pool is deleted"}},
		"cluster goes too": {"its Nodes go with it", settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfigView{}
			s.Cluster.DeletionTimestamp = s.Pool.DeletionTimestamp
		}), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.s)
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
		decide(settled(deleted, func(s *snapshot) { s.Infra = contract.InfraMachinePool(contract.Object{Problem: "label its CRD"}) })),
		decide(settled(deleted, func(s *snapshot) {
			s.Infra, s.Bootstrap = contract.InfraMachinePoolView{}, contract.BootstrapConfig(contract.Object{Problem: "label its CRD"})
		})),
	} {
		if p.Recheck != 30*time.Second {
			t.Errorf("again in %s: nobody watches a kind that cannot be read", p.Recheck)
		}
	}
}

func TestMark(t *testing.T) { // MP-05, MA-11
	s := settled(func(s *snapshot) {
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
