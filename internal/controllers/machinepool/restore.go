package machinepool

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/loop"
)

// What comes back from a backup has no owners, finalizers and status, and comes in any order. A pool without
// status.observedGeneration may be such a one. What a backup keeps tells how much of it is still to come: the provider
// IDs in the specs of the pool, of its infrastructure, and of the Machines.

// isRecorded reports whether the pool was seen whole before, in this life.
func isRecorded(s Snapshot) bool { return s.Pool.Status.ObservedGeneration > 0 }

// isComplete reports whether the pool has all its parts, so that Machines may be made, and puts that on record.
func isComplete(s Snapshot) bool {
	switch {
	case isRecorded(s):
		return true
	case !hasUsableInfra(s):
		return false
	case !hasMachines(s): // it has none, or has not said so yet
		return len(s.Machines) == 0 && (s.infra().IsDone() || len(remembered(s)) == 0)
	}
	alone := withoutInfraMachine(s)
	return len(missingMachines(s)) == 0 && !slices.ContainsFunc(s.Machines, func(m clusterv1.Machine) bool {
		return alone[m.Name] && awaited(s, m)
	})
}

// remembered are the provider IDs of the instances that there were. An infrastructure that is provisioned says what
// there is, not what was.
func remembered(s Snapshot) []string {
	ids := slices.Clone(s.Pool.Spec.ProviderIDList)
	if !s.infra().IsDone() {
		ids = append(ids, s.Infra.ProviderIDList.Or(nil)...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// missingMachines are the provider IDs of instances whose Machines do not exist.
func missingMachines(s Snapshot) []string { return without(s, remembered(s)) }

// without returns those provider IDs that no Machine of the pool has.
func without(s Snapshot, ids []string) []string {
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

// withoutInfraMachine are the names of the Machines that stay and have no infrastructure machine; none where these are not known.
func withoutInfraMachine(s Snapshot) map[string]bool {
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

// awaited reports whether the infrastructure machine of a Machine is still to come: it was there when the Machine got
// its provider ID, and has not been seen since. Nothing is known of those without an ID, but that they were made in
// this life where the pool is on record.
func awaited(s Snapshot, m clusterv1.Machine) bool {
	return !isTrue(m.Status.Initialization.InfrastructureProvisioned) && (m.Spec.ProviderID != "" || !isRecorded(s))
}

// controlled reports whether the pool is the controller of a Machine.
func controlled(s Snapshot, m clusterv1.Machine) bool {
	owner := metav1.GetControllerOfNoCopy(&m)
	return owner != nil && owner.UID == s.Pool.UID
}

// waitForParts says what the pool waits for before it makes Machines.
func waitForParts(s Snapshot, p *loop.Plan) {
	if ids := missingMachines(s); len(ids) > 0 {
		p.WaitFor(waitingForRestore, "Machines with the provider IDs %s do not exist: restore them; or delete what is left of them, and "+
			"take the IDs off spec.providerIDList", condition.Names(ids)).For("MachinePool", s.Pool.Name).ForPerson()
	}
}

// followsList reports whether the list of provider IDs may replace that of the pool. Before the pool is on record its list
// must not name instances that have no Machine yet: after a crash they would pass for ones to be restored.
func followsList(s Snapshot) bool {
	return hasUsableList(s) && (isRecorded(s) || !hasMachines(s) || len(missingMachines(s)) == 0 && len(without(s, s.Infra.ProviderIDList.Or(nil))) == 0)
}
