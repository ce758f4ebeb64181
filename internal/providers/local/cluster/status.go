package cluster

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/fault"
	"github.com/slipwayhq/slipway/internal/loop"
)

// Facts are what the conditions are made from.
type Facts struct {
	Snapshot
	Plan    loop.Plan
	Outcome loop.Outcome
}

// Conditions of a LocalCluster (IC-05).
func Conditions() condition.Table[Facts] {
	return condition.Table[Facts]{
		{Type: infrav1.NetworkReadyCondition, Of: networkReady},
		{Type: clusterv1.DeletingCondition, Polarity: condition.Negative, Of: deleting},
		condition.Ready[Facts](infrav1.NetworkReadyCondition),
	}
}

func networkReady(f Facts) condition.Verdict {
	switch {
	case f.simulated() && len(f.Plan.Wait) == 0:
		return condition.True("Simulated")
	case fault.As(f.Outcome.Err) != nil:
		why := fault.As(f.Outcome.Err)
		return condition.False(why.Reason, why.Message)
	case f.Fault != nil && f.Object.Status.Network.Name != "":
		return condition.Unknown(f.Fault.Reason, f.Fault.Message)
	case len(f.Plan.Wait) > 0 && f.Object.DeletionTimestamp.IsZero() && !aboutEndpoint(f.Plan.Wait[0]):
		return condition.False(f.Plan.Wait[0].Reason, f.Plan.Wait[0].Message)
	case f.Network == nil:
		return condition.False("NetworkAbsent", "the network is gone")
	}
	if r := outside(f.Snapshot); f.Cluster != nil && len(r) > 0 {
		return condition.TrueBecause(clusterv1.ReadyReason, fmt.Sprintf(
			"the ranges %s in spec.clusterNetwork of the Cluster are outside of the network %s: only a network add-on that wraps packets can use them",
			strings.Trim(fmt.Sprint(r), "[]"), f.Network.Subnet))
	}
	return condition.True(clusterv1.ReadyReason)
}

func aboutEndpoint(w loop.Wait) bool {
	return w.Reason == reasonEndpoint || w.Reason == reasonControlPlane
}

func deleting(f Facts) condition.Verdict {
	if f.Object.DeletionTimestamp.IsZero() {
		return condition.False(clusterv1.NotDeletingReason, "")
	}
	var lines []string
	for _, w := range f.Plan.Wait {
		lines = append(lines, w.Message)
	}
	return condition.TrueBecause(clusterv1.DeletingReason, strings.Join(lines, "\n"))
}

// Report makes the status and the events.
func Report(s Snapshot, p loop.Plan, out loop.Outcome) loop.Report {
	at := loop.MomentOf(s.Object, s.Now)
	status := infrav1.LocalClusterStatus{
		Conditions:     Conditions().Evaluate(Facts{s, p, out}, at),
		FailureDomains: s.Object.Spec.FailureDomains, // IC-03
		Initialization: s.Object.Status.Initialization,
		Network:        s.Object.Status.Network,
	}
	if s.Network != nil {
		status.Network = infrav1.LocalClusterNetworkStatus{
			Name: s.Network.Name, Subnet: s.Network.Subnet.String(), Gateway: s.Network.Gateway.String(),
		}
	}
	idle := len(p.Wait) == 0 && len(p.Actions) == 0 && s.Object.DeletionTimestamp.IsZero()
	if idle && (s.Network != nil || s.simulated()) { // IC-04
		yes := true
		status.Initialization.Provisioned = &yes
	}
	return loop.Report{Status: status, Events: events(s, status, out)}
}

// events tells of a network that was made or removed, and of a trouble when it begins.
func events(s Snapshot, status infrav1.LocalClusterStatus, out loop.Outcome) []loop.Event {
	var list []loop.Event
	for _, a := range out.Done {
		switch a := a.(type) {
		case EnsureNetwork:
			list = append(list, loop.Normal("NetworkCreated", "made network %s", a.Name))
		case DeleteNetwork:
			list = append(list, loop.Normal("NetworkDeleted", "removed network %s", a.Name))
		}
	}
	now := condition.Set(status.Conditions).Get(infrav1.NetworkReadyCondition)
	before := condition.Set(s.Object.Status.Conditions).Get(infrav1.NetworkReadyCondition)
	trouble := fault.As(out.Err) != nil || s.Fault != nil || slices.Contains([]string{reasonOverlap, reasonDenied, reasonTaken}, now.Reason)
	if trouble && (before == nil || before.Reason != now.Reason) {
		list = append(list, loop.Warning(now.Reason, "%s", now.Message))
	}
	return list
}
