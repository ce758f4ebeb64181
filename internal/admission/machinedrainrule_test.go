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
