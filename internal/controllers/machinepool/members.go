package machinepool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/version"
)

// decideMachines keeps one Machine for each infrastructure machine. None is made before the pool is whole, and
// none that the pool does not control is removed.
func decideMachines(s Snapshot, p *loop.Plan) {
	if !hasMachines(s) {
		return
	}
	if !isComplete(s) {
		waitForParts(s, p)
	} else {
		decideCreation(s, p)
	}
	alone, fresh := withoutInfraMachine(s), newMachine(s, CreateMachine{})
	for _, m := range s.Machines {
		switch {
		case !m.DeletionTimestamp.IsZero():
			decideTimeouts(s, m, p)
		case orphaned(s, m):
			p.Do(AdoptMachine{Machine: m.Name})
		case !controlled(s, m):
		case alone[m.Name]:
			decideWithoutInfraMachine(s, m, p)
		default:
			decideMachine(s, m, fresh, p)
		}
	}
}

// decideCreation creates the Machines that are missing.
func decideCreation(s Snapshot, p *loop.Plan) {
	exists := map[string]bool{}
	for _, m := range s.Machines {
		exists[m.Name] = true
	}
	for _, im := range s.InfraMachines {
		if !exists[im.GetName()] && im.GetDeletionTimestamp().IsZero() {
			if exists[im.GetName()] = true; s.Policy.DeniedReplicas(int32(len(exists))) != "" {
				return
			}
			p.Do(CreateMachine{Name: im.GetName(), Kind: im.GetKind()})
		}
	}
}

// decideBereft removes a Machine whose infrastructure machine is gone, and not one whose is still to come.
func decideWithoutInfraMachine(s Snapshot, m clusterv1.Machine, p *loop.Plan) {
	if awaited(s, m) {
		p.WaitFor(waitingForRestore, "The infrastructure machine of Machine %s does not exist: restore it, or delete the Machine", m.Name).For("Machine", m.Name).ForPerson()
		return
	}
	p.Do(DeleteMachine{Name: m.Name, Why: "its infrastructure machine is gone"})
}

// decideMachine keeps one Machine what the template and its Node say, then its UpToDate condition true. fresh
// is what a new Machine would be.
func decideMachine(s Snapshot, m clusterv1.Machine, fresh *clusterv1.Machine, p *loop.Plan) {
	if versionOf(s, m) != m.Spec.Version || !machines.Follows(&m, fresh, fieldManager) {
		p.Do(SyncMachine{Machine: m.Name})
		return
	}
	want := upToDate(s, m)
	have := conditionOf(m, clusterv1.MachineUpToDateCondition)
	if have == nil || have.Status != want.Status || have.Reason != want.Reason || have.Message != want.Message {
		p.Do(JudgeMachine{Machine: m.Name, Verdict: want})
	}
}

// decideTimeouts lets a deletion that is under way follow the template: a timeout may be what ends it.
func decideTimeouts(s Snapshot, m clusterv1.Machine, p *loop.Plan) {
	if controlled(s, m) && !machines.SameDeletion(m.Spec.Deletion, deletionOf(s)) {
		p.Do(SyncTimeouts{Machine: m.Name})
	}
}

// versionOf is the version that a Machine should show: that of its Node, as far as it is one.
func versionOf(s Snapshot, m clusterv1.Machine) string {
	if running := kubeletVersion(s, m); version.Valid(running) {
		return running
	}
	return m.Spec.Version
}

// orphaned reports whether a Machine with the labels of the pool has no controller, or this pool in an earlier life or
// an earlier version of the API.
func orphaned(s Snapshot, m clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(&m)
	if owner == nil {
		return true
	}
	return owner.Kind == "MachinePool" && owner.Name == s.Pool.Name &&
		(owner.UID != s.Pool.UID || owner.APIVersion != clusterv1.GroupVersion.String())
}

// hasMachines reports whether the infrastructure has a kind for its instances.
func hasMachines(s Snapshot) bool { return s.Infra.MachineKind.Or("") != "" }

// kubeletVersion is the version that the Node of a Machine runs, empty where that is not known.
func kubeletVersion(s Snapshot, m clusterv1.Machine) string {
	if node, ok := s.Nodes.Items[m.Spec.ProviderID]; ok && m.Spec.ProviderID != "" {
		return node.Status.NodeInfo.KubeletVersion
	}
	if m.Status.NodeInfo != nil {
		return m.Status.NodeInfo.KubeletVersion
	}
	return ""
}
