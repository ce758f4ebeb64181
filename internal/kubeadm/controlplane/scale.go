package controlplane

import (
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// desired returns the desired number of Machines.
func desired(s snapshot) int { return int(ptr.Deref(s.ControlPlane.Spec.Replicas, 1)) }

// scale creates or deletes one Machine. While Machines are outdated, the number of Machines may exceed the desired
// number by the surge of the strategy.
func scale(s snapshot, c changeInput, p *reconciler.Plan) bool {
	have, want := len(s.Machines)+len(s.Created), desired(s)
	outdated := s.outdated()
	why := fmt.Sprintf("scale up from %d to %d", have, want)
	if len(outdated) > 0 {
		want += maxSurge(s.ControlPlane)
		why = s.describeReasons(outdated)
	}
	switch {
	case have == 0:
		initialize(s, c, p)
	case have < want:
		scaleUp(s, c, why, p)
	case have > desired(s), len(outdated) > 0:
		scaleDown(s, outdated, p)
	default:
		if waiting := (preflightInput{snapshot: s}).notInitialized(); waiting != "" {
			p.WaitFor(waitForFirst, "%s", waiting).ForAll(machineKind, machines.List(s.Machines.Machines()).Names()).ToChange("status.nodeRef")
		}
		return false
	}
	return true
}

// initialize creates the first Machine.
func initialize(s snapshot, c changeInput, p *reconciler.Plan) {
	switch {
	case s.isInitialized() && s.managesEtcd():
		p.WaitFor(waitForMachines, "The control plane was initialized and none of its Machines exists: restore them, or delete the Cluster; another first "+
			"Machine would be another cluster").For(controlPlaneKind, s.ControlPlane.Name).UntilUserActs()
	case isBlocked(s, scaleUpInput(s, c), p):
	default:
		create(s, createMachine{Why: "initialize the cluster"}, p)
	}
}

func scaleUp(s snapshot, c changeInput, why string, p *reconciler.Plan) {
	if isBlocked(s, scaleUpInput(s, c), p) || !prepare(s, p) {
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

func scaleDown(s snapshot, outdated []string, p *reconciler.Plan) {
	chosen, ok := nextToDelete(s.candidates(), s.Cluster)
	if !ok {
		return
	}
	facts := preflightInput{snapshot: s, leaving: chosen.Name}
	if isBlocked(s, facts, p) || isWritten(s.Machines.Named(chosen.Name), *p) || s.updateInput().beginUpdate(chosen, p) {
		return
	}
	if obstacle := s.Etcd.Obstacle(chosen.Name); s.managesEtcd() && s.Etcd.HasMember(chosen.Name) && obstacle != "" {
		p.WaitFor(waitForPreflight, "Machine %s cannot be deleted: %s", chosen.Name, obstacle).For(machineKind, chosen.Name).ForTime()
		p.RecheckIn(preflightRecheck)
		return
	}
	why := fmt.Sprintf("scale down to %d, %s", desired(s), chosen.deletionReason())
	if len(outdated) > 0 && chosen.Outdated {
		why = s.describeReasons([]string{chosen.Name}) + s.updateInput().notInPlaceReason(chosen.Name)
	}
	p.Do(machines.DeleteMachines{Names: []string{chosen.Name}, Why: why})
}
