package machineset

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// count returns the number of Machines, including those that are being deleted and those that the cache does not
// show yet.
func count(s snapshot) int { return len(s.Machines) + len(s.Created) }

// desired returns the desired number of Machines, and whether it is known.
func desired(s snapshot) (int, bool) {
	if s.Set.Spec.Replicas == nil {
		return 0, false
	}
	return int(*s.Set.Spec.Replicas), true
}

// missing returns how many Machines are missing. observe draws random numbers for their names, and needsPreflight
// checks it.
func missing(s snapshot) int {
	want, known := desired(s)
	if !known || isDeleting(s) {
		return 0
	}
	return max(0, want-present(s))
}

// present returns the number of Machines without those that were transferred to the MachineSet and are not included
// in its replicas yet.
func present(s snapshot) int { return count(s) - len(s.Machines) + len(counted(s)) }

// waitingForReplicas is the message for a MachineSet whose number of replicas was never set.
const waitingForReplicas = "Waiting for spec.replicas to be set; until then no Machine is created or deleted"

// scale is the last part of [decide]: it creates and deletes Machines until the desired number is reached.
func scale(s snapshot, blockers []reconciler.Wait, p *reconciler.Plan) {
	want, known := desired(s)
	have := present(s)
	switch {
	case !known:
		p.WaitFor(clusterv1.MachineSetScalingUpWaitingForReplicasSetReason, waitingForReplicas).
			For(setKind, s.Set.Name).ToChange("spec.replicas")
	case have < want && len(blockers) > 0:
		p.Waits = append(p.Waits, blockers...)
		for _, w := range blockers {
			p.RecheckIn(recheckOf(w.Reason))
		}
	case have < want:
		scaleUp(s, want, p)
	case have > want && transfersMachines(s):
		transferSurplus(s, have-want, p)
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

func scaleUp(s snapshot, want int, p *reconciler.Plan) {
	have := present(s)
	names, err := newNames(s, want-have)
	if err != nil {
		p.WaitFor(waitForName, "spec.machineNaming.template %s", err).For(setKind, s.Set.Name).UntilUserActs()
		return
	}
	for part := range slices.Chunk(names, batch) {
		p.Do(machines.CreateMachines{Names: part, Why: fmt.Sprintf("scale up from %d to %d", have, want)})
	}
	if len(names) < want-have {
		p.RecheckIn(machines.PendingRecheck) // all random parts are used; the next reconciliation generates others
	}
}

// recheckOf returns the interval for checking a blocker of the creation of Machines again, or zero if a watch
// reports its end.
func recheckOf(reason string) time.Duration {
	switch reason {
	case waitForTemplate:
		return missingRecheck
	case waitForPreflight:
		return preflightRecheck
	}
	return 0
}
