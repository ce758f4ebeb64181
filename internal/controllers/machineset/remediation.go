package machineset

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/rollout"
)

// remediation returns which Machines are replaced because a MachineHealthCheck requests it: as many at once as the
// MachineDeployment allows, and only while Machines can be created. [decide] records the decision in the conditions of
// the Machines; the next reconciliation deletes them (remediate).
func remediation(s snapshot, deferred []string) machines.Remediation {
	r := machines.Remediation{Members: s.Machines, Deferred: deferred, Limit: int32(max(count(s), 1))}
	if s.Deployment == nil {
		return r
	}
	if limit := s.Deployment.Spec.Remediation.MaxInFlight; limit != nil {
		var err error
		if r.Limit, err = rollout.MaxInFlight(limit, ptr.Deref(s.Deployment.Spec.Replicas, 0)); err != nil {
			r.Refused = "spec.remediation of the MachineDeployment: " + err.Error()
		}
	}
	if s.Set.Annotations[clusterv1.RevisionAnnotation] != s.Deployment.Annotations[clusterv1.RevisionAnnotation] {
		r.Refused = "Machine is not replaced by itself: the rollout of its MachineDeployment replaces it"
	}
	return r
}

// remediate deletes the Machines whose replacement is recorded. [decide] calls it.
func remediate(r machines.Remediation, blockers []reconciler.Wait, p *reconciler.Plan) {
	due := r.Delete()
	deleteMachines(p, due, "a health check failed")
	for _, w := range blockers {
		if w.Reason == waitForPreflight && len(due) < len(r.Candidates()) {
			p.RecheckIn(preflightRecheck)
		}
	}
}
