package machineset

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
)

// count is the number of Machines that exist, those that are being deleted and those that the cache does not show yet
// included.
func count(s Snapshot) int { return len(s.Machines) + len(s.Created) }

// desired is the number of Machines that the set asks for; false: it does not say yet.
func desired(s Snapshot) (int, bool) {
	if s.Set.Spec.Replicas == nil {
		return 0, false
	}
	return int(*s.Set.Spec.Replicas), true
}

// missing is how many Machines are missing.
func missing(s Snapshot) int {
	want, known := desired(s)
	if !known || isDeleting(s) {
		return 0
	}
	return max(0, want-present(s))
}

// present are the Machines that exist, but for those that were handed over to the set and that its replicas do not count yet.
func present(s Snapshot) int { return count(s) - len(s.Machines) + len(counted(s)) }

// waitingForReplicas is the message of a set whose number of replicas was never set.
const waitingForReplicas = "Waiting for spec.replicas to be set; until then no Machine is created or deleted"

// scale creates and deletes Machines until there are as many as desired.
func scale(s Snapshot, blockers []loop.Wait, p *loop.Plan) {
	want, known := desired(s)
	have := present(s)
	switch {
	case !known:
		p.WaitFor(clusterv1.MachineSetScalingUpWaitingForReplicasSetReason, waitingForReplicas).
			For(setKind, s.Set.Name).ToChange("spec.replicas")
	case have < want && len(blockers) > 0:
		p.Wait = append(p.Wait, blockers...)
		for _, w := range blockers {
			p.RecheckIn(recheckOf(w.Reason))
		}
	case have < want:
		scaleUp(s, want, p)
	case have > want && handsOver(s):
		handOver(s, have-want, p)
	case have > want:
		order := s.Set.Spec.Deletion.Order
		deleteMachines(p, counted(s).DeleteCandidates(have-want, machines.ByDeletionPriority(order)),
			fmt.Sprintf("scale down to %d, %s", want, machines.OrderText(order)))
	}
	if len(s.Created) > 0 {
		p.WaitFor(waitForCache, "Waiting for the cache to show %d new Machines", len(s.Created)).
			ForAll("Machine", s.Created).ToChange("")
		p.RecheckIn(machines.PendingRecheck)
	}
}

func scaleUp(s Snapshot, want int, p *loop.Plan) {
	have := present(s)
	names, err := newNames(s, want-have)
	if err != nil {
		p.WaitFor(waitForName, "spec.machineNaming.template %s", err).For(setKind, s.Set.Name).ForPerson()
		return
	}
	for part := range slices.Chunk(names, batch) {
		p.Do(machines.Create{Names: part, Why: fmt.Sprintf("scale up from %d to %d", have, want)})
	}
	if len(names) < want-have {
		p.RecheckIn(machines.PendingRecheck) // all random parts were taken: others next time
	}
}

// recheckOf is when to check again what blocks the creation of Machines; zero: a watch tells.
func recheckOf(reason string) time.Duration {
	switch reason {
	case waitForTemplate:
		return missingRecheck
	case waitForPreflight:
		return preflightRecheck
	}
	return 0
}
