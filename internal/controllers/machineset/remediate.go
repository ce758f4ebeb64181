package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// unhealthy are the Machines that a health check asks the set to replace (MS-18), in the order in which to do so: those
// that a person marked, then the newest.
func unhealthy(s Snapshot) []Member {
	var out []Member
	for _, m := range s.Machines {
		if asked(m.Machine) && !m.Deleted {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(marked(a), marked(b)),
			b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out
}

func marked(m Member) int {
	if _, ok := m.Annotations[clusterv1.RemediateMachineAnnotation]; ok {
		return 0
	}
	return 1
}

// asked reports whether a health check failed and its replacement was asked for.
func asked(m *clusterv1.Machine) bool {
	set := condition.Set(m.Status.Conditions)
	return set.IsFalse(clusterv1.MachineHealthCheckSucceededCondition) && set.IsFalse(clusterv1.MachineOwnerRemediatedCondition)
}

// underway reports whether the set has begun to replace a Machine.
func underway(m *clusterv1.Machine) bool {
	c := of(m, clusterv1.MachineOwnerRemediatedCondition)
	return asked(m) && c.Reason == clusterv1.MachineSetMachineRemediationMachineDeletingReason
}

// verdicts says of each unhealthy Machine what becomes of it, by name.
//
//	begun before                                      go on
//	set is not the newest of its MachineDeployment    never: the rollout replaces it
//	a preflight check fails                           later
//	as many are replaced as may be at once            later
//	otherwise                                         delete; its replacement comes by itself
func verdicts(s Snapshot) map[string]condition.Verdict {
	out := map[string]condition.Verdict{}
	free, limit, problem := budget(s)
	problems := preflight(s)
	for _, m := range unhealthy(s) {
		switch {
		case underway(m.Machine):
			out[m.Name] = condition.False(clusterv1.MachineSetMachineRemediationMachineDeletingReason, "Machine is deleted to be replaced")
		case !current(s):
			out[m.Name] = condition.False(clusterv1.MachineSetMachineCannotBeRemediatedReason,
				"Machine is not replaced by itself: the rollout of its MachineDeployment replaces it")
		case problem != "":
			out[m.Name] = condition.False(clusterv1.MachineSetMachineCannotBeRemediatedReason, problem)
		case len(problems) > 0:
			out[m.Name] = condition.False(clusterv1.MachineSetMachineRemediationDeferredReason, "* "+strings.Join(problems, "\n* "))
		case free <= 0:
			out[m.Name] = condition.False(clusterv1.MachineSetMachineRemediationDeferredReason,
				fmt.Sprintf("Waiting for other Machines to be replaced: at most %d at once", limit))
		default:
			free--
			out[m.Name] = condition.False(clusterv1.MachineSetMachineRemediationMachineDeletingReason, "Machine is deleted to be replaced")
		}
	}
	return out
}

// budget is how many more Machines may be replaced now, and how many at once altogether (DP-15).
func budget(s Snapshot) (free, limit int32, problem string) {
	limit = int32(max(count(s), 1))
	if s.Deployment != nil && s.Deployment.Spec.Remediation.MaxInFlight != nil {
		replicas := int32(0)
		if s.Deployment.Spec.Replicas != nil {
			replicas = *s.Deployment.Spec.Replicas
		}
		var err error
		if limit, err = rollout.MaxInFlight(s.Deployment.Spec.Remediation.MaxInFlight, replicas); err != nil {
			return 0, 0, "spec.remediation of the MachineDeployment: " + err.Error()
		}
	}
	free = limit
	for _, m := range s.Machines {
		if underway(m.Machine) {
			free--
		}
	}
	return free, limit, ""
}

// current reports whether the set is the newest of its MachineDeployment.
func current(s Snapshot) bool {
	return s.Deployment == nil ||
		s.Set.Annotations[clusterv1.RevisionAnnotation] == s.Deployment.Annotations[clusterv1.RevisionAnnotation]
}

// remediate deletes the Machines of which it is on record that they are replaced: the record first, so that the budget
// holds after a crash.
func remediate(s Snapshot, p *loop.Plan) {
	var going []string
	waiting := false
	for _, m := range unhealthy(s) {
		if underway(m.Machine) {
			going = append(going, m.Name)
		} else {
			waiting = true
		}
	}
	deleteMachines(p, going, "a health check failed")
	if waiting && len(preflight(s)) > 0 {
		p.RecheckIn(preflightRecheck)
	}
}

// ours reports whether the condition OwnerRemediated says something that this controller says.
func ours(c *metav1.Condition) bool {
	return c != nil && slices.Contains([]string{
		clusterv1.MachineSetMachineRemediationMachineDeletingReason, clusterv1.MachineSetMachineRemediationDeferredReason,
		clusterv1.MachineSetMachineCannotBeRemediatedReason,
	}, c.Reason)
}
