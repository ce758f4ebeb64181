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

// Remediation decides which unhealthy Machines of an owner are replaced now. The decision is on record in the condition
// OwnerRemediated before a Machine is deleted, so that the limit holds after a crash; the replacement is created when the owner
// scales up again.
type Remediation struct {
	Members Members
	// Refused says why the owner replaces no Machine by itself; empty: it does.
	Refused string
	// Deferred says why no Machine can be replaced now, a line each.
	Deferred []string
	// Limit is how many Machines may be replaced at once.
	Limit int32
}

// NeedsRemediation reports whether a health check failed and asks the owner to replace the Machine.
func NeedsRemediation(m *clusterv1.Machine) bool {
	set := condition.Set(m.Status.Conditions)
	return set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.IsFalse(clusterv1.MachineOwnerRemediatedCondition)
}

// isRemediating reports whether it is on record that the owner replaces the Machine.
func isRemediating(m *clusterv1.Machine) bool {
	return NeedsRemediation(m) && condition.Set(m.Status.Conditions).Get(clusterv1.MachineOwnerRemediatedCondition).Reason ==
		clusterv1.MachineSetMachineRemediationMachineDeletingReason
}

// Candidates are the Machines to replace, in the order in which to do so: those that a person marked, then the newest.
func (r Remediation) Candidates() Members {
	var out Members
	for _, m := range r.Members {
		if NeedsRemediation(m.Machine) && !m.Deleted {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(remediationRank(a), remediationRank(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

func remediationRank(m Member) int {
	if _, marked := m.Annotations[clusterv1.RemediateMachineAnnotation]; marked {
		return 0
	}
	return 1
}

// Verdicts are the conditions OwnerRemediated of the candidates, by name.
//
//	on record                                   MachineDeleting: nothing stops it any more
//	the owner replaces none by itself           CannotBeRemediated
//	none can be replaced now                    RemediationDeferred
//	as many are replaced as may be at once      RemediationDeferred
//	otherwise                                   MachineDeleting
func (r Remediation) Verdicts() map[string]condition.Verdict {
	out := map[string]condition.Verdict{}
	free := r.Limit
	for _, m := range r.Members {
		if isRemediating(m.Machine) {
			free--
		}
	}
	deleting := condition.False(clusterv1.MachineSetMachineRemediationMachineDeletingReason, "Machine is deleted to be replaced")
	for _, m := range r.Candidates() {
		switch {
		case isRemediating(m.Machine):
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

// Delete names the Machines to delete: it is on record that they are replaced.
func (r Remediation) Delete() []string {
	var out []string
	for _, m := range r.Candidates() {
		if isRemediating(m.Machine) {
			out = append(out, m.Name)
		}
	}
	return out
}

// setsRemediated reports whether a condition OwnerRemediated has one of the reasons that owners set.
func setsRemediated(c *metav1.Condition) bool {
	return c != nil && slices.Contains([]string{
		clusterv1.MachineSetMachineRemediationMachineDeletingReason, clusterv1.MachineSetMachineRemediationDeferredReason,
		clusterv1.MachineSetMachineCannotBeRemediatedReason,
	}, c.Reason)
}
