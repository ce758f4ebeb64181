package machinepool

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	infrav1 "github.com/slipwayhq/slipway/api/infrastructure/v1alpha1"
	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/infrastructure"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/reconciler/ownership"
)

// Reasons of waits and conditions. Their values must not change.
const (
	reasonOwner          = "WaitingForMachinePool"
	reasonInfrastructure = "WaitingForClusterInfrastructureReady"
	reasonDeleting       = "WaitingForMachines"
	reasonRestore        = "WaitingForLocalMachines"
	reasonDenied         = "DeniedByPolicy"
)

// maxCreationsPerPlan limits the number of machines that one plan creates, because a plan is held in memory as a whole
// and users choose any number of replicas. The created machines trigger the next plan.
const maxCreationsPerPlan = 50

// decide computes the plan for a LocalMachinePool. Package reconciler calls it in each reconciliation, again after the
// reads that it requests. It is pure: it neither reads nor writes. A plan that creates or deletes machines is computed
// from live reads.
func decide(s snapshot) reconciler.Plan {
	var p reconciler.Plan
	if awaited := s.unrestoredIDs(); len(awaited) > 0 && s.Object.DeletionTimestamp.IsZero() {
		p.WaitFor(reasonRestore, "Waiting for %s to be restored and reconciled; if a machine will not be restored, delete its remaining objects and "+
			"remove its ID from spec.providerIDList", condition.Names(awaited)).For(kind, s.Object.Name).UntilUserActs()
		restoreOwners(s, &p)
		return p
	}
	if ids := s.providerIDs(); !slices.Equal(ids, s.Object.Spec.ProviderIDList) || s.Object.Spec.ProviderID == "" {
		p.Do(updateProviderIDs{IDs: strings.Join(ids, ",")})
	}
	if !s.Object.DeletionTimestamp.IsZero() {
		decideDeletion(s, &p)
		return p
	}
	if s.Pool == nil {
		p.WaitFor(reasonOwner, "Waiting for the MachinePool that owns this object to exist").For(kind, s.Object.Name).ToChange("metadata.ownerReferences")
		return p
	}
	changes := decideMembers(s, &p)
	if len(changes) > 0 && !s.Live {
		return reconciler.Plan{Reads: []reconciler.ReadRequest{readMembers{}}}
	}
	p.Do(changes...)
	restoreOwners(s, &p)
	return p
}

// restoreOwners restores the pool's owner reference on its machines.
func restoreOwners(s snapshot, p *reconciler.Plan) {
	for _, m := range s.Members {
		if m.Local.DeletionTimestamp.IsZero() && !ownership.Owns(s.Object, m.Local) {
			p.Do(adoptMachine{Name: m.Local.Name})
		}
	}
}

func decideDeletion(s snapshot, p *reconciler.Plan) {
	if !s.Live {
		*p = reconciler.Plan{Reads: []reconciler.ReadRequest{readMembers{}}}
		return
	}
	var names []string
	var locals []metav1.Object
	for _, m := range s.Members {
		names, locals = append(names, m.Local.Name), append(locals, m.Local)
		if !m.deleting() {
			p.Do(removalOf(m, "the pool is being deleted"))
		}
	}
	if len(names) > 0 {
		p.WaitFor(reasonDeleting, "Waiting for LocalMachines %s to be deleted%s", condition.Names(names),
			condition.ForeignFinalizersText(infrav1.GroupVersion.WithKind(localMachineKind).GroupKind(), locals...)).ForAll(localMachineKind, names).ToChange("")
	}
}

// memberGroups contains the members grouped by the action that they need.
type memberGroups struct {
	// current members are up to date, outdated members have to be replaced; both are sorted in deletion order.
	current, outdated []poolMember
	removals          []reconciler.Action
}

func groupMembers(s snapshot) memberGroups {
	var c memberGroups
	hash := s.hash()
	for _, m := range s.Members {
		switch {
		case m.deleting():
		case m.lost():
			c.removals = append(c.removals, removalOf(m, "its machine was removed from the host"))
		case m.unhealthy():
			c.removals = append(c.removals, removalOf(m, "a health check found it unhealthy"))
		case m.outdated(hash):
			c.outdated = append(c.outdated, m)
		default:
			c.current = append(c.current, m)
		}
	}
	slices.SortStableFunc(c.current, deletionOrder)
	slices.SortStableFunc(c.outdated, deletionOrder)
	return c
}

// decideMembers returns the actions that bring the pool to the desired number of up-to-date machines.
func decideMembers(s snapshot, p *reconciler.Plan) []reconciler.Action {
	c := groupMembers(s)
	changes := c.removals
	active, desired := len(c.current)+len(c.outdated), s.desired()
	if over := active - desired; over > 0 {
		changes = append(changes, scaleDown(c, over, desired)...)
	}
	missing := max(0, desired-active)
	if len(c.outdated) > 0 && missing == 0 && active == desired && len(c.current) < desired {
		missing = 1 // surge by one machine until it is ready
	}
	if missing == 0 {
		return changes
	}
	if !canCreate(s, p) {
		return changes
	}
	domains := newSpread(s)
	for i := range min(missing, maxCreationsPerPlan) {
		why := "there are fewer than desired"
		if active >= desired {
			why = "it replaces an outdated one"
		}
		changes = append(changes, createMachine{Name: newName(s, i), FailureDomain: domains.next(), Why: why})
	}
	return changes
}

// canCreate reports whether all prerequisites for a new machine are met. Scripted machines can boot before their
// bootstrap data exists.
func canCreate(s snapshot, p *reconciler.Plan) bool {
	denied := s.Policy.DeniedReplicas(int32(s.desired()))
	switch {
	case denied != "":
		p.WaitFor(reasonDenied, "%s", denied).For(kind, s.Object.Name).UntilUserActs()
	case s.Cluster == nil || !ptr.Deref(s.Cluster.Status.Initialization.InfrastructureProvisioned, false):
		p.WaitFor(reasonInfrastructure, "Waiting for the cluster's infrastructure (LocalCluster) to be provisioned").
			For("Cluster", s.Pool.Spec.ClusterName).ToChange("status.initialization.infrastructureProvisioned")
	case !s.NodeCapacity.Scripted && ptr.Deref(s.Pool.Spec.Template.Spec.Bootstrap.DataSecretName, "") == "":
		infrastructure.WaitForBootstrapData(p, reconciler.Subject{Kind: "MachinePool", Name: s.Pool.Name}, s.Cluster, s.Pool.Spec.Template.Spec.Bootstrap)
	default:
		return true
	}
	return false
}

// scaleDown returns the removal of surplus members. During a rollout only outdated members are removed, and the last
// surplus one waits until every current member is ready.
func scaleDown(c memberGroups, over, desired int) []reconciler.Action {
	var out []reconciler.Action
	if len(c.outdated) == 0 || len(c.current) > desired {
		outdated := map[string]bool{}
		for _, m := range c.outdated {
			outdated[m.Local.Name] = true
		}
		rank := func(m poolMember) int { return deletionRank(m, outdated[m.Local.Name]) }
		all := append(append([]poolMember{}, c.current...), c.outdated...)
		slices.SortStableFunc(all, func(a, b poolMember) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), deletionOrder(a, b))
		})
		for _, m := range all[:over] {
			out = append(out, removalOf(m, "there are more than desired; "+removalReasons()[rank(m)]))
		}
		return out
	}
	healthy := !slices.ContainsFunc(c.current, func(m poolMember) bool { return !m.ready() })
	for i, m := range c.outdated[:min(over, len(c.outdated))] {
		if surge := i == over-1; surge && !healthy && m.ready() {
			break
		}
		out = append(out, removalOf(m, "it is outdated"))
	}
	return out
}

// deletionOrder sorts members, which are all outdated or all current, for deletion: first members with the delete-machine
// annotation, then members that are not ready, then the oldest.
func deletionOrder(a, b poolMember) int {
	return cmp.Or(
		cmp.Compare(deletionRank(a, false), deletionRank(b, false)),
		a.Local.CreationTimestamp.Compare(b.Local.CreationTimestamp.Time),
		strings.Compare(a.Local.Name, b.Local.Name))
}

// deletionRank returns the index of the reason in [removalReasons] why a member is removed before others.
func deletionRank(m poolMember, outdated bool) int {
	switch {
	case m.unwanted():
		return 0
	case !m.ready():
		return 1
	case outdated:
		return 2
	}
	return 3
}

func removalReasons() [4]string {
	return [...]string{"it is marked with the delete-machine annotation", "it is not Ready", "it is outdated", "it is the oldest"}
}

// providerIDs returns the sorted provider IDs of the machines that became Nodes and still exist. A machine in the
// current list has had a Node, even if its status was lost.
func (s snapshot) providerIDs() []string {
	var ids []string
	for _, m := range s.Members {
		id := m.Local.Spec.ProviderID
		if (m.provisioned() || slices.Contains(s.Object.Spec.ProviderIDList, id)) && !m.lost() && id != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// recorded reports whether all machines of the pool have been observed since it was created or restored; the status
// then contains their number.
func (s snapshot) recorded() bool { return s.Object.Status.Replicas != nil }

// unrestoredIDs returns, for a pool restored from a backup, the provider IDs in its list whose machines are not
// restored yet. A machine is restored when its Machine exists and its LocalMachine has conditions. The result is empty
// once all machines have been observed, and sorted like the list.
func (s snapshot) unrestoredIDs() []string {
	if s.recorded() {
		return nil
	}
	back := map[string]bool{}
	for _, m := range s.Members {
		back[m.Local.Spec.ProviderID] = m.Machine != nil && len(m.Local.Status.Conditions) > 0
	}
	return slices.DeleteFunc(slices.Clone(s.Object.Spec.ProviderIDList), func(id string) bool { return back[id] })
}

func removalOf(m poolMember, why string) removeMachine {
	r := removeMachine{Name: m.Local.Name, Why: why}
	if m.Machine != nil {
		r.Machine = m.Machine.Name
	}
	return r
}
