package machinepool

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/reconciler"
)

// This file prevents a pool that is restored from a backup from creating Machines for instances whose Machines are not
// restored yet. Restored objects have no owner references, finalizers and status, and are restored in any order. A pool
// without status.observedGeneration may be a restored one. The provider IDs in the specs of the pool, its
// infrastructure and its Machines, which a backup preserves, show which objects are still missing.

// isRecorded reports whether the pool was recorded as complete.
func isRecorded(s snapshot) bool { return s.Pool.Status.ObservedGeneration > 0 }

// isComplete reports whether all objects of the pool exist, so that Machines may be created. decideMachines calls it
// before it creates Machines. [report] records the result in status.observedGeneration.
func isComplete(s snapshot) bool {
	switch {
	case isRecorded(s):
		return true
	case !hasUsableInfra(s):
		return false
	case !hasMachines(s): // it has none, or does not report any yet
		return len(s.Machines) == 0 && (s.infra().IsDone() || len(knownProviderIDs(s)) == 0)
	}
	alone := withoutInfraMachine(s)
	return len(missingMachines(s)) == 0 && !slices.ContainsFunc(s.Machines, func(m clusterv1.Machine) bool {
		return alone[m.Name] && awaited(s, m)
	})
}

// knownProviderIDs returns the provider IDs of instances that existed before the backup. The list of a provisioned
// infrastructure is not included, because it describes the current instances.
func knownProviderIDs(s snapshot) []string {
	ids := slices.Clone(s.Pool.Spec.ProviderIDList)
	if !s.infra().IsDone() {
		ids = append(ids, s.Infra.ProviderIDList.Or(nil)...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// missingMachines returns the provider IDs of instances whose Machines do not exist.
func missingMachines(s snapshot) []string { return without(s, knownProviderIDs(s)) }

// without returns the provider IDs that no Machine of the pool has.
func without(s snapshot, ids []string) []string {
	has := map[string]bool{}
	for _, m := range s.Machines {
		has[m.Spec.ProviderID] = true
	}
	var out []string
	for _, id := range ids {
		if !has[id] {
			out = append(out, id)
		}
	}
	return out
}

// withoutInfraMachine returns the names of Machines that are not being deleted and have no infrastructure machine.
// It returns none if the infrastructure machines are unknown.
func withoutInfraMachine(s snapshot) map[string]bool {
	out := map[string]bool{}
	if s.Infra.Problem != "" {
		return out
	}
	for _, m := range s.Machines {
		out[m.Name] = m.DeletionTimestamp.IsZero()
	}
	for _, im := range s.InfraMachines {
		out[im.GetName()] = false
	}
	return out
}

// awaited reports whether the infrastructure machine of a Machine may still be restored: it existed when the Machine
// got its provider ID, and the status does not record that it was observed since. A Machine without a provider ID may
// come from a backup only while the pool is not recorded as complete.
func awaited(s snapshot, m clusterv1.Machine) bool {
	return !ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) && (m.Spec.ProviderID != "" || !isRecorded(s))
}

// controlled reports whether the pool is the controller of a Machine. decideMachines skips other Machines.
func controlled(s snapshot, m clusterv1.Machine) bool {
	owner := metav1.GetControllerOfNoCopy(&m)
	return owner != nil && owner.UID == s.Pool.UID
}

// waitForParts adds a wait for the objects that are needed before Machines are created. decideMachines calls it.
func waitForParts(s snapshot, p *reconciler.Plan) {
	if ids := missingMachines(s); len(ids) > 0 {
		p.WaitFor(waitingForRestore, "Machines with the provider IDs %s do not exist: restore them; or delete what is left of them, and "+
			"take the IDs off spec.providerIDList", condition.Names(ids)).For("MachinePool", s.Pool.Name).UntilUserActs()
	}
}

// followsList reports whether the infrastructure's list of provider IDs may replace the pool's. Before the pool is
// recorded as complete, its list must not contain instances without a Machine, because after a crash these would count
// as instances to be restored. If the result is false, copyProviderFields does not change the pool's list.
func followsList(s snapshot) bool {
	return hasUsableList(s) && (isRecorded(s) || !hasMachines(s) || len(missingMachines(s)) == 0 && len(without(s, s.Infra.ProviderIDList.Or(nil))) == 0)
}
