package machinedeployment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// waitingForDeletion is the reason of the wait from which the Deleting condition takes its message.
const waitingForDeletion = "WaitingForMachineSetsDeletion"

// decideDeletion is the part of [decide] for a MachineDeployment that is being deleted. It deletes all MachineSets,
// including the ones that were not adopted yet, and waits until they are gone. It reads no templates, because these may
// not exist any more.
func decideDeletion(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	left, sets := setNames(s), make([]metav1.Object, 0, len(s.Sets))
	for i := range s.Sets {
		set := &s.Sets[i]
		sets = append(sets, set)
		if !controls(s.Deployment, set) {
			p.Do(adoptSet{Set: set.Name})
		} else if set.DeletionTimestamp.IsZero() {
			p.Do(deleteSet{Name: set.Name, Why: "the deployment is deleted"})
		}
	}
	if len(left) > 0 {
		p.WaitFor(waitingForDeletion, "MachineSets %s still exist%s", condition.Names(left),
			condition.ForeignFinalizersText(clusterv1.GroupVersion.WithKind("MachineSet").GroupKind(), sets...)).ForAll("MachineSet", left).ToChange("")
	}
	return p
}

func setNames(s snapshot) []string {
	var out []string
	for i := range s.Sets {
		out = append(out, s.Sets[i].Name)
	}
	return out
}
