package admission

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// A selector that cannot be read is repeated as it was written. DP-17, MS-23, HC-05, MD-09
func TestBadSelectorsAreShown(t *testing.T) {
	bad := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}
	rule := &clusterv1.MachineDrainRule{}
	rule.Spec.Pods = []clusterv1.MachineDrainRulePodSelector{{Selector: &bad}}
	for name, errs := range map[string]field.ErrorList{
		"MachineDeployment, MachineSet": validateTemplateSelector(bad, nil, field.NewPath("spec")),
		"MachineHealthCheck":            validateSelector(bad, field.NewPath("spec", "selector")),
		"MachineDrainRule":              validateMachineDrainRule(rule).Errors,
	} {
		text := errs.ToAggregate().Error()
		if len(errs) != 1 || !strings.Contains(text, "tier") || !strings.Contains(text, "elector: Invalid value") ||
			!strings.Contains(text, `"Near" is not a valid label selector operator`) {
			t.Errorf("%s says %s", name, text)
		}
	}
}
