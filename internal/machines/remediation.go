package machines

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
)

// Remediation decides which unhealthy Machines of a MachineSet are replaced now, in each reconciliation. A
// MachineHealthCheck requests the replacement by setting the Machine's condition OwnerRemediated to False. The decision
// is recorded in this condition before a Machine is deleted, so that the limit holds after a crash. The replacement is
// created when the MachineSet scales up again.
type Remediation struct {
	Members OwnedMachines
	// Refused explains why the owner never replaces Machines itself, or is empty.
	Refused string
	// Deferred explains why no Machine can be replaced now, one reason per line.
	Deferred []string
	// Limit is how many Machines may be replaced at the same time.
	Limit int32
}

// NeedsRemediation reports whether a health check failed and the owner has to replace the Machine. The
// KubeadmControlPlane controller calls only this function, because it has its own order of replacements.
func NeedsRemediation(m *clusterv1.Machine) bool {
	set := condition.Set(m.Status.Conditions)
	return set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.IsFalse(clusterv1.MachineOwnerRemediatedCondition)
}

// IsRemediating reports whether the decision to replace the Machine is recorded, as owners do before they delete it: the
// MachineSet and KubeadmControlPlane controllers record the same reason. The SSHMachine controller calls it for a Machine
// that is being deleted.
func IsRemediating(m *clusterv1.Machine) bool {
	return NeedsRemediation(m) && condition.Set(m.Status.Conditions).Get(clusterv1.MachineOwnerRemediatedCondition).Reason ==
		clusterv1.MachineSetMachineRemediationMachineDeletingReason
}

// Candidates returns the Machines to replace in order: Machines that a user marked first, then the newest. The
// MachineSet controller calls it.
func (r Remediation) Candidates() OwnedMachines {
	var out OwnedMachines
	for _, m := range r.Members {
		if NeedsRemediation(m.Machine) && !m.Deleted {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b OwnedMachine) int {
		return cmp.Or(cmp.Compare(remediationRank(a), remediationRank(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

func remediationRank(m OwnedMachine) int {
	if _, marked := m.Annotations[clusterv1.RemediateMachineAnnotation]; marked {
		return 0
	}
	return 1
}

// Conditions returns the OwnerRemediated conditions of the candidates by name.
//
//	decision already recorded                   MachineDeleting: the decision is final
//	the owner never replaces Machines itself    CannotBeRemediated
//	no Machine can be replaced now              RemediationDeferred
//	the limit is reached                        RemediationDeferred
//	otherwise                                   MachineDeleting
func (r Remediation) Conditions() map[string]condition.Result {
	out := map[string]condition.Result{}
	free := r.Limit
	for _, m := range r.Members {
		if IsRemediating(m.Machine) {
			free--
		}
	}
	deleting := condition.False(clusterv1.MachineSetMachineRemediationMachineDeletingReason, "Machine is deleted to be replaced")
	for _, m := range r.Candidates() {
		switch {
		case IsRemediating(m.Machine):
			out[m.Name] = deleting
		case r.Refused != "":
			out[m.Name] = condition.False(clusterv1.MachineSetMachineCannotBeRemediatedReason, r.Refused)
		case len(r.Deferred) > 0:
			out[m.Name] = condition.False(clusterv1.MachineSetMachineRemediationDeferredReason, "* "+strings.Join(r.Deferred, "\n* "))
		case free <= 0:
			out[m.Name] = condition.False(clusterv1.MachineSetMachineRemediationDeferredReason,
				fmt.Sprintf("Waiting for other Machines to be replaced: at most %d at once", r.Limit))
		default:
			free--
			out[m.Name] = deleting
		}
	}
	return out
}

// Delete returns the names of the Machines to delete, whose replacement is recorded.
func (r Remediation) Delete() []string {
	var out []string
	for _, m := range r.Candidates() {
		if IsRemediating(m.Machine) {
			out = append(out, m.Name)
		}
	}
	return out
}

// setsRemediated reports whether an OwnerRemediated condition has one of the reasons that owners set. A condition with
// another reason is not withdrawn, because another program set it. [newSetConditions] calls it.
func setsRemediated(c *metav1.Condition) bool {
	return c != nil && slices.Contains([]string{
		clusterv1.MachineSetMachineRemediationMachineDeletingReason, clusterv1.MachineSetMachineRemediationDeferredReason,
		clusterv1.MachineSetMachineCannotBeRemediatedReason,
	}, c.Reason)
}
