package topology

import (
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
)

// judged is what the condition is made from.
type judged struct {
	Snapshot
	plan loop.Plan
	out  loop.Outcome
}

var conditions = condition.Table[judged]{{Type: clusterv1.ClusterTopologyReconciledCondition, Of: judged.reconciled}}

// Report says the condition of a topology.
func Report(s Snapshot, p loop.Plan, out loop.Outcome) loop.Report {
	if !s.Cluster.Spec.Topology.IsDefined() {
		return loop.Report{}
	}
	list := conditions.Evaluate(judged{s, p, out}, loop.MomentOf(s.Cluster, s.Now))
	return loop.Report{Status: map[string]any{"conditions": list}, Events: events(out)}
}

func (j judged) reconciled() condition.Verdict {
	switch {
	case j.out.Err != nil && fault.KindOf(j.out.Err) == fault.Conflict:
		if last := condition.Set(j.Cluster.Status.Conditions).Get(clusterv1.ClusterTopologyReconciledCondition); last != nil {
			return condition.Verdict{Status: last.Status, Reason: last.Reason, Message: last.Message}
		}
		return condition.Unknown(clusterv1.ClusterTopologyReconciledClusterCreatingReason, "Cluster is being created")
	case j.out.Err != nil:
		return condition.False(clusterv1.ClusterTopologyReconciledFailedReason, failure(j.out.Err))
	case len(j.plan.Wait) == 0:
		return condition.True(clusterv1.ClusterTopologyReconcileSucceededReason)
	}
	var lines []string
	for _, w := range j.plan.Wait {
		lines = append(lines, w.Message)
	}
	if len(lines) == 1 {
		return condition.False(j.plan.Wait[0].Reason, lines[0])
	}
	return condition.False(j.plan.Wait[0].Reason, "* "+strings.Join(lines, "\n* "))
}

// failure is what an error says to people, and that it is retried where a retry may help.
func failure(err error) string {
	text := message(err)
	if fault.KindOf(err) != fault.Invalid {
		text += "; retrying"
	}
	return text
}

// events tell what was done.
func events(out loop.Outcome) []loop.Event {
	return eventsOf(out.Done)
}

func eventsOf(done []loop.Action) []loop.Event {
	var list []loop.Event
	for _, action := range done {
		switch a := action.(type) {
		case Create:
			list = append(list, loop.Normal("TopologyCreate", "Created %s %s", a.Part.Want.GetKind(), a.Part.Want.GetName()))
		case Apply:
			list = append(list, loop.Normal("TopologyUpdate", "Updated %s %s", a.Part.Want.GetKind(), a.Part.Want.GetName()))
		case Workers:
			for _, worker := range a.Each {
				list = append(list, eventsOf(worker.Steps)...)
			}
		case Delete:
			list = append(list, loop.Normal("TopologyDelete", "Deleted %s %s", a.Kind, a.Name))
		}
	}
	return list
}
