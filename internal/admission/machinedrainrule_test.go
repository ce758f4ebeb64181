package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestMachineDrainRule(t *testing.T) { // MD-09
	good := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	bad := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	for name, tc := range map[string]struct {
		reason string
		spec   clusterv1.MachineDrainRuleSpec
		want   []string
	}{
		"none":                    {"for every Machine and Pod", clusterv1.MachineDrainRuleSpec{}, nil},
		"order":                   {"of those that are drained", clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorDrain, Order: new(int32(1))}}, nil},
		"order of what stays":     {"never drained", clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorSkip, Order: new(int32(1))}}, []string{"spec.drain.order"}},
		"order of what completes": {"always 0", clusterv1.MachineDrainRuleSpec{Drain: clusterv1.MachineDrainRuleDrainConfig{Behavior: clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted, Order: new(int32(1))}}, []string{"spec.drain.order"}},
		"good": {"readable", clusterv1.MachineDrainRuleSpec{
			Machines: []clusterv1.MachineDrainRuleMachineSelector{{Selector: good, ClusterSelector: good}},
			Pods:     []clusterv1.MachineDrainRulePodSelector{{Selector: good, NamespaceSelector: good}}}, nil},
		"bad": {"each is named by its place", clusterv1.MachineDrainRuleSpec{
			Machines: []clusterv1.MachineDrainRuleMachineSelector{{Selector: bad}, {ClusterSelector: bad}},
			Pods:     []clusterv1.MachineDrainRulePodSelector{{Selector: good}, {Selector: bad, NamespaceSelector: bad}},
		}, []string{"spec.machines[0].selector", "spec.machines[1].clusterSelector", "spec.pods[1].selector", "spec.pods[1].namespaceSelector"}},
	} {
		got := Validate(Request{New: &clusterv1.MachineDrainRule{Spec: tc.spec}})
		if diff := cmp.Diff(tc.want, problems(got)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", name, tc.reason, diff)
		}
	}
}

func TestTaintKeys(t *testing.T) { // MA-17
	on := Gates{MachineTaintPropagation: true}
	for key, tc := range map[string]struct {
		reason                string
		worker, control, gate bool // allowed on a worker, on a control plane, without the gate
	}{
		"example.org/a":                       {"a user's own", true, true, false},
		"a":                                   {"without a domain", true, true, false},
		"node.cluster.x-k8s.io/uninitialized": {"Cluster API's", false, false, false},
		"node.cluster.x-k8s.io/outdated-revision":        {"Cluster API's", false, false, false},
		"node.kubernetes.io/not-ready":                   {"Kubernetes'", false, false, false},
		"node.kubernetes.io/unschedulable":               {"Kubernetes'", false, false, false},
		"node.kubernetes.io/out-of-service":              {"set by people", true, true, false},
		"node.cloudprovider.kubernetes.io/uninitialized": {"cloud providers'", false, false, false},
		"node.cloudprovider.kubernetes.io/shutdown":      {"cloud providers'", false, false, false},
		"node-role.kubernetes.io/master":                 {"of old control planes", false, false, false},
		"node-role.kubernetes.io/control-plane":          {"of control planes", false, true, false},
		"node-role.kubernetes.io/gpu":                    {"a role that users define", true, true, false},
	} {
		machine := func(labels map[string]string) *clusterv1.Machine {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
			m.Spec.Bootstrap.ConfigRef = ref("Config")
			m.Spec.Taints = []clusterv1.MachineTaint{{Key: key, Effect: "NoSchedule", Propagation: clusterv1.MachineTaintPropagationAlways}}
			return m
		}
		worker, control := machine(nil), machine(map[string]string{clusterv1.MachineControlPlaneLabel: ""})
		got := []bool{
			len(Validate(Request{New: worker, Gates: on}).Errors) == 0,
			len(Validate(Request{New: control, Gates: on}).Errors) == 0,
			len(Validate(Request{New: worker}).Errors) == 0,
		}
		if diff := cmp.Diff([]bool{tc.worker, tc.control, tc.gate}, got); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", key, tc.reason, diff)
		}
	}
}
