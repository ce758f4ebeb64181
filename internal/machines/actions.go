package machines

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// The actions on Machines and their clones (package clone) that the MachineSet and KubeadmControlPlane controllers plan
// and [MachineWriter] runs. Each may be repeated. Users read Why in logs and events.
type (
	// SyncMachine applies the fields that follow the template in place to a Machine. [OwnerState.Propagation] plans it.
	SyncMachine struct{ Machine string }
	// syncTimeouts applies the deletion timeouts to a Machine that is being deleted.
	syncTimeouts struct{ Machine string }
	// SyncClone applies labels and annotations to a clone of a Machine.
	SyncClone struct{ Kind, Name, Machine string }
	// deleteOrphan deletes a clone whose Machine was never created.
	deleteOrphan struct{ Kind, Name string }
	// setConditions sets the conditions of a Machine that its owner computes. An absent result leaves UpToDate
	// unchanged and removes OwnerRemediated. [OwnerState.SetConditions] plans it.
	setConditions struct {
		Machine              string
		UpToDate, Remediated condition.Result
	}
	// CreateMachines creates Machines with their clones. The owner's controller plans it and chooses the names.
	CreateMachines struct {
		Names []string
		Why   string
	}
	// DeleteMachines deletes Machines. The owner's controller plans it and selects the Machines.
	DeleteMachines struct {
		Names []string
		Why   string
	}
)

// Independent marks actions that may run in parallel.
func (SyncMachine) Independent()   {}
func (syncTimeouts) Independent()  {}
func (SyncClone) Independent()     {}
func (deleteOrphan) Independent()  {}
func (setConditions) Independent() {}

// Creates makes package reconciler report a rejection without the generated names, which differ in each attempt.
func (a CreateMachines) Creates() (kind string, names []string) { return "Machine", a.Names }

// Parts implements reconciler.Compound.
func (a CreateMachines) Parts() []reconciler.Action {
	var out []reconciler.Action
	for _, name := range a.Names {
		out = append(out, CreateMachines{Names: []string{name}, Why: a.Why})
	}
	return out
}

// Parts implements reconciler.Compound.
func (a DeleteMachines) Parts() []reconciler.Action {
	var out []reconciler.Action
	for _, name := range a.Names {
		out = append(out, DeleteMachines{Names: []string{name}, Why: a.Why})
	}
	return out
}

func (a SyncMachine) String() string {
	return fmt.Sprintf("sync Machine %s: it differs from the template", a.Machine)
}

func (a syncTimeouts) String() string {
	return fmt.Sprintf("sync Machine %s: the timeouts of its deletion changed", a.Machine)
}

func (a SyncClone) String() string {
	return fmt.Sprintf("sync labels and annotations to %s %s", a.Kind, a.Name)
}

func (a deleteOrphan) String() string {
	return fmt.Sprintf("delete %s %s: its Machine was never created", a.Kind, a.Name)
}

func (a setConditions) String() string {
	text := "UpToDate " + verdictText(a.UpToDate)
	if a.Remediated != condition.Absent() {
		text += ", OwnerRemediated " + verdictText(a.Remediated)
	}
	return fmt.Sprintf("set conditions of Machine %s: %s", a.Machine, text)
}

func (a CreateMachines) String() string {
	return fmt.Sprintf("create %s: %s", NamesText(a.Names), a.Why)
}

func (a DeleteMachines) String() string {
	return fmt.Sprintf("delete %s: %s", NamesText(a.Names), a.Why)
}

func verdictText(v condition.Result) string {
	if v == condition.Absent() {
		return "unchanged"
	}
	return fmt.Sprintf("%s (%s)", v.Status, v.Reason)
}

// newSetConditions returns the action that sets the owner's conditions on a Machine, and whether the action changes
// anything. [OwnerState.SetConditions] calls it.
func newSetConditions(m *clusterv1.Machine, upToDate, remediated condition.Result) (setConditions, bool) {
	set := condition.Set(m.Status.Conditions)
	current := set.Get(clusterv1.MachineOwnerRemediatedCondition)
	withdraws := remediated == condition.Absent() && setsRemediated(current)
	differs := withdraws || differs(current, remediated) || differs(set.Get(clusterv1.MachineUpToDateCondition), upToDate)
	return setConditions{Machine: m.Name, UpToDate: upToDate, Remediated: remediated}, differs
}
