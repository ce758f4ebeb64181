package machinepool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/version"
)

// decideMachines is the part of [decide] for a pool whose infrastructure has a kind for its instances. It maintains one
// Machine of the same name for each infrastructure machine. No Machine is created before the pool is complete
// (restore.go), and no Machine that the pool does not control is deleted.
func decideMachines(s snapshot, p *reconciler.Plan) {
	if !hasMachines(s) {
		return
	}
	if !isComplete(s) {
		waitForParts(s, p)
	} else {
		decideCreation(s, p)
	}
	alone, fresh := withoutInfraMachine(s), newMachine(s, createMachine{})
	for _, m := range s.Machines {
		switch {
		case !m.DeletionTimestamp.IsZero():
			decideTimeouts(s, m, p)
		case orphaned(s, m):
			p.Do(adoptMachine{Machine: m.Name})
		case !controlled(s, m):
		case alone[m.Name]:
			decideWithoutInfraMachine(s, m, p)
		default:
			decideMachine(s, m, fresh, p)
		}
	}
}

// decideCreation creates the missing Machines.
func decideCreation(s snapshot, p *reconciler.Plan) {
	exists := map[string]bool{}
	for _, m := range s.Machines {
		exists[m.Name] = true
	}
	for _, im := range s.InfraMachines {
		if !exists[im.GetName()] && im.GetDeletionTimestamp().IsZero() {
			if exists[im.GetName()] = true; s.Policy.DeniedReplicas(int32(len(exists))) != "" {
				return
			}
			p.Do(createMachine{Name: im.GetName(), Kind: im.GetKind()})
		}
	}
}

// decideWithoutInfraMachine deletes a Machine whose infrastructure machine is gone, unless the infrastructure
// machine may still be restored.
func decideWithoutInfraMachine(s snapshot, m clusterv1.Machine, p *reconciler.Plan) {
	if awaited(s, m) {
		p.WaitFor(waitingForRestore, "The infrastructure machine of Machine %s does not exist: restore it, or delete the Machine", m.Name).For("Machine", m.Name).UntilUserActs()
		return
	}
	p.Do(deleteMachine{Name: m.Name, Why: "its infrastructure machine is gone"})
}

// decideMachine updates a Machine to match the template and its Node, then sets its UpToDate condition. The
// argument fresh is the Machine as it would be created now.
func decideMachine(s snapshot, m clusterv1.Machine, fresh *clusterv1.Machine, p *reconciler.Plan) {
	if versionOf(s, m) != m.Spec.Version || !machines.Follows(&m, fresh, fieldManager) {
		p.Do(syncMachine{Machine: m.Name})
		return
	}
	want := upToDate(s, m)
	have := conditionOf(m, clusterv1.MachineUpToDateCondition)
	if have == nil || have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message {
		p.Do(setUpToDate{Machine: m.Name, Verdict: want})
	}
}

// decideTimeouts updates the timeouts of a Machine that is being deleted, because a changed timeout can end the
// deletion.
func decideTimeouts(s snapshot, m clusterv1.Machine, p *reconciler.Plan) {
	if controlled(s, m) && !machines.SameDeletion(m.Spec.Deletion, deletionOf(s)) {
		p.Do(syncTimeouts{Machine: m.Name})
	}
}

// versionOf returns the version for a Machine's spec: the version of its Node, if that is valid.
func versionOf(s snapshot, m clusterv1.Machine) string {
	if running := kubeletVersion(s, m); version.Valid(running) {
		return running
	}
	return m.Spec.Version
}

// orphaned reports whether a Machine with the labels of the pool has no controller, or a controller reference to
// this pool with another UID or an older API version.
func orphaned(s snapshot, m clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(&m)
	if owner == nil {
		return true
	}
	return owner.Kind == "MachinePool" && owner.Name == s.Pool.Name &&
		(owner.UID != s.Pool.UID || owner.APIVersion != clusterv1.GroupVersion.String())
}

// hasMachines reports whether the infrastructure has a kind for its instances. The controller then creates a Machine
// for each instance; otherwise it only reads their Nodes.
func hasMachines(s snapshot) bool { return s.Infra.MachineKind.Or("") != "" }

// kubeletVersion returns the version of a Machine's Node, or an empty string if it is unknown.
func kubeletVersion(s snapshot, m clusterv1.Machine) string {
	if node, ok := s.Nodes.Items[m.Spec.ProviderID]; ok && m.Spec.ProviderID != "" {
		return node.Status.NodeInfo.KubeletVersion
	}
	if m.Status.NodeInfo != nil {
		return m.Status.NodeInfo.KubeletVersion
	}
	return ""
}
