package machinedeployment

import (
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
)

const waitingForDeletion = "WaitingForMachineSetsDeletion"

// decideDeletion deletes the MachineSets, also those that were not adopted yet, and waits until they are gone. Templates are not
// read: they may not exist any more.
func decideDeletion(s Snapshot) loop.Plan {
	var p loop.Plan
	left := setNames(s)
	for i := range s.Sets {
		set := &s.Sets[i]
		if !controls(s.Deployment, set) {
			p.Do(Adopt{Set: set.Name})
		} else if set.DeletionTimestamp.IsZero() {
			p.Do(DeleteSet{Name: set.Name, Why: "the deployment is deleted"})
		}
	}
	if len(left) > 0 {
		p.WaitFor(waitingForDeletion, "MachineSets %s still exist", condition.Names(left)).ForAll("MachineSet", left).ToChange("")
	}
	return p
}

func setNames(s Snapshot) []string {
	var out []string
	for i := range s.Sets {
		out = append(out, s.Sets[i].Name)
	}
	return out
}
