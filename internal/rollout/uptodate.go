package rollout

import (
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// UpToDateCondition returns the UpToDate condition of a Machine of a MachineDeployment. It depends on the Machine's
// MachineSet, and not on changes of the Machine itself.
func UpToDateCondition(m *clusterv1.Machine, set *clusterv1.MachineSet, d *clusterv1.MachineDeployment, now time.Time) condition.Result {
	return ConditionOfChanges(m, OutdatedReasons(set, d, now), nil)
}

// OutdatedReasons lists the reasons why the Machines of a MachineSet are not up to date with the deployment.
func OutdatedReasons(set *clusterv1.MachineSet, d *clusterv1.MachineDeployment, now time.Time) []string {
	missing := Differences(set.Spec.Template, d.Spec.Template)
	if Expired(d.Spec.Rollout.After.Time, set.CreationTimestamp.Time, now) {
		missing = append(missing, "MachineDeployment spec.rollout.after expired")
	}
	return missing
}

// ConditionOfChanges returns the UpToDate condition of a Machine from its missing and unknown changes.
func ConditionOfChanges(m *clusterv1.Machine, missing, unknown []string) condition.Result {
	_, updating := m.Annotations[clusterv1.UpdateInProgressAnnotation]
	switch {
	case len(missing) > 0:
		return condition.False(clusterv1.MachineNotUpToDateReason, "* "+strings.Join(missing, "\n* "))
	case updating:
		return condition.False(clusterv1.MachineUpToDateUpdatingReason, "* In-place update in progress")
	case len(unknown) > 0:
		return condition.Unknown(clusterv1.UpToDateUnknownReason, strings.Join(unknown, "\n"))
	}
	return condition.True(clusterv1.MachineUpToDateReason)
}
