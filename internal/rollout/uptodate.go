package rollout

import (
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// UpToDateCondition computes the UpToDate condition of a Machine of a MachineDeployment, for the Machine controller and
// for the progress that the commands show. It compares the template of the Machine's MachineSet with the deployment;
// edits of the Machine's own spec have no effect. Other owners of Machines compute it in another way.
func UpToDateCondition(m *clusterv1.Machine, set *clusterv1.MachineSet, d *clusterv1.MachineDeployment, now time.Time) condition.Result {
	return ConditionOfChanges(m, OutdatedReasons(set, d, now), nil)
}

// OutdatedReasons lists the reasons why the Machines of a MachineSet are not up to date with the deployment. The
// MachineDeployment controller calls it for its own counts, because the Machines' conditions may still refer to an
// earlier template.
func OutdatedReasons(set *clusterv1.MachineSet, d *clusterv1.MachineDeployment, now time.Time) []string {
	missing := Differences(set.Spec.Template, d.Spec.Template)
	if Expired(d.Spec.Rollout.After.Time, set.CreationTimestamp.Time, now) {
		missing = append(missing, "MachineDeployment spec.rollout.after expired")
	}
	return missing
}

// ConditionOfChanges returns the UpToDate condition of a Machine. The argument missing has the reasons why the Machine
// is outdated, such as [Differences]. The argument unknown has a line for each part whose template is unknown; only
// standalone MachineSets have such parts (package machines). The message is a list with "* ", which is Cluster API's
// format.
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
