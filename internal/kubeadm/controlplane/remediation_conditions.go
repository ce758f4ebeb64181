package controlplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// remediationDiffering returns the types of the conditions that have to be written: those that differ, and an OwnerRemediated
// condition of a remediation that is no longer requested.
func remediationDiffering(m *clusterv1.Machine, want []metav1.Condition) []string {
	have, set := condition.Set(m.Status.Conditions), condition.Set(want)
	var out []string
	for _, c := range want {
		old := have.Get(c.Type)
		if old == nil || old.Status != c.Status || old.Reason != c.Reason || old.Message != c.Message {
			out = append(out, c.Type)
		}
	}
	remediated := have.Get(clusterv1.MachineOwnerRemediatedCondition)
	if remediated != nil && set.Get(clusterv1.MachineOwnerRemediatedCondition) == nil && isOwnReason(remediated.Reason) {
		out = append(out, clusterv1.MachineOwnerRemediatedCondition)
	}
	return out
}
