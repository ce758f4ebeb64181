package controlplane

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// desired returns the desired number of Machines. This file plans the creation and deletion of Machines for scaling and
// rollouts.
func desired(s snapshot) int { return int(ptr.Deref(s.ControlPlane.Spec.Replicas, 1)) }

// scale creates or deletes one Machine, and reports whether the number of Machines or their state has to change. It is
// a step of [decideChange]. While Machines are outdated, the number of Machines may exceed the desired number by the
// surge of the strategy. The preflight checks come first, so that at most one Machine changes at a time.
func scale(s snapshot, p *reconciler.Plan) bool {
	have, want := len(s.Machines)+len(s.Created), desired(s)
	outdated := s.outdated()
	why := fmt.Sprintf("scale up from %d to %d", have, want)
	if len(outdated) > 0 {
		want += maxSurge(s.ControlPlane)
		why = s.describeReasons(outdated)
	}
	switch {
	case have == 0:
		initialize(s, p)
	case have < want:
		scaleUp(s, why, p)
	case have > desired(s), len(outdated) > 0:
		scaleDown(s, outdated, p)
	default:
		if waiting := s.notInitialized(); waiting != "" {
			p.WaitFor(waitForFirst, "%s", waiting).ForAll(machineKind, machines.List(s.Machines.Machines()).Names()).ToChange("status.nodeRef")
		}
		return false
	}
	return true
}

// initialize creates the first Machine, which initializes the cluster, unless the cluster was initialized before.
func initialize(s snapshot, p *reconciler.Plan) {
	switch {
	case s.isInitialized() && s.managesEtcd():
		p.WaitFor(waitForMachines, "The control plane is initialized, but none of its Machines exist: restore the Machines, or delete the Cluster; a new "+
			"first Machine would create another cluster").For(controlPlaneKind, s.ControlPlane.Name).UntilUserActs()
	case isBlocked(preflight{snapshot: s, up: true}, p):
	default:
		create(s, createMachine{Why: "initialize the cluster"}, p)
	}
}

// scaleUp creates a Machine that joins the cluster.
func scaleUp(s snapshot, why string, p *reconciler.Plan) {
	if isBlocked(preflight{snapshot: s, up: true}, p) || !prepare(s, p) {
		return
	}
	create(s, createMachine{Joins: true, Why: why}, p)
}

// create chooses the name and the failure domain of the new Machine.
func create(s snapshot, a createMachine, p *reconciler.Plan) {
	taken := slices.Concat(machines.List(s.Machines.Machines()).Names(), s.Created, s.Taken)
	names, err := newNames(s.ControlPlane, s.Cluster.Name, s.Random, taken)
	if err != nil {
		p.WaitFor(waitForName, "spec.machineNaming.template %s", err).For(controlPlaneKind, s.ControlPlane.Name).UntilUserActs()
		return
	}
	if len(names) == 0 {
		p.RecheckIn(machines.PendingRecheck) // all names were taken; the next reconciliation uses other random parts
		return
	}
	a.Name, a.Domain = names[0], domainForNew(s.candidates(), s.Cluster)
	p.Do(a)
}

// scaleDown deletes one Machine, or updates it in place if it is outdated and an extension can.
func scaleDown(s snapshot, outdated []string, p *reconciler.Plan) {
	chosen, ok := nextToDelete(s.candidates(), s.Cluster)
	if !ok {
		return
	}
	if isBlocked(preflight{snapshot: s, leaving: chosen.Name}, p) || s.isPending(chosen.OwnedMachine) || s.beginUpdate(chosen, p) {
		return
	}
	if s.managesEtcd() && chosen.MayHaveMember && chosen.Obstacle != "" {
		p.WaitFor(waitForPreflight, "Machine %s cannot be deleted: %s", chosen.Name, chosen.Obstacle).For(machineKind, chosen.Name).ForTime()
		p.RecheckIn(preflightRecheck)
		return
	}
	why := fmt.Sprintf("scale down to %d, %s", desired(s), chosen.deletionReason())
	if chosen.isOutdated() {
		why = s.describeReasons([]string{chosen.Name}) + s.notInPlaceReason(chosen.Name)
	}
	p.Do(machines.DeleteMachines{Names: []string{chosen.Name}, Why: why})
}
