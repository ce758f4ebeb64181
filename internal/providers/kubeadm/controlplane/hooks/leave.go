package hooks

import (
	"slices"
	"strings"
	"time"

	"github.com/slipwayhq/slipway/internal/loop"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/action"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/health"
	"github.com/slipwayhq/slipway/internal/providers/kubeadm/controlplane/quorum"
)

const (
	// WaitForEtcd is the reason for waiting for etcd members.
	WaitForEtcd = "WaitingForEtcd"

	machineKind = "Machine"
	// soon is the delay until a write is visible in the cache, unhealthyInterval is the interval while members cannot
	// be removed, and deletionRecheck is the interval while a Machine is being deleted.
	soon, unhealthyInterval, deletionRecheck = 2 * time.Second, 10 * time.Second, 30 * time.Second
)

// Input is the input of decisions about the deletion of Machines.
type Input struct {
	Machines machines.Members
	// Etcd maps Machines to etcd members. Problem is the reason if the members are unknown. Leader is the name of the
	// leader.
	Etcd            quorum.Matching
	Problem, Leader string
	// Managed is true if etcd runs on the Machines. Initialized is true if the cluster exists.
	Managed, Initialized bool
	// IsWritten reports whether this plan writes the Machine, or the last write is not in the cache yet.
	IsWritten func(machines.Member) bool
}

// Leave processes one deleted Machine that waits for the hook, and reports whether there is one. A Machine whose
// member cannot be removed does not block other Machines, because one of them may have to be replaced first.
func (in Input) Leave(p *loop.Plan) bool {
	for _, m := range in.leaving() {
		if why := in.holds(m); why != "" {
			p.WaitFor(WaitForEtcd, "Machine %s keeps its member of etcd: %s", m.Name, why).For(machineKind, m.Name).ForTime()
			p.RecheckIn(unhealthyInterval)
			continue
		}
		in.leave(m, p)
		return true
	}
	return false
}

// IsHeld reports whether a deleted Machine only waits for the removal of its etcd member.
func (in Input) IsHeld(m machines.Member) bool { return in.holds(m) != "" }

// holds returns the reason why the member of a Machine cannot be removed now. It is empty if it can be removed, or if
// another step comes first.
func (in Input) holds(m machines.Member) string {
	if !IsReached(m.Machine) || !in.hasEtcd() || in.Problem != "" || !in.isAnyLeft() {
		return ""
	}
	if _, is := in.Etcd.Of(m.Name); !is {
		return in.Etcd.Doubt(m.Name)
	}
	return in.Etcd.Obstacle(m.Name)
}

func (in Input) hasEtcd() bool { return in.Managed && in.Initialized }

// isAnyLeft reports whether any Machine is not being deleted.
func (in Input) isAnyLeft() bool {
	return slices.ContainsFunc(in.Machines, func(m machines.Member) bool { return !m.Deleted })
}

// leave removes the etcd member and then the hook of a Machine.
func (in Input) leave(m machines.Member, p *loop.Plan) {
	others := Others(m.Machine)
	switch {
	case in.IsWritten(m):
		p.RecheckIn(soon)
	case !IsReached(m.Machine):
		p.RecheckIn(deletionRecheck)
	case len(others) > 0 && IsLast(m.Machine):
		p.WaitFor(WaitForEtcd, "Waiting for the owners of the other pre-terminate hooks of Machine %s to remove the annotations %s", m.Name, strings.Join(others, ", ")).
			For(machineKind, m.Name).ToChange("metadata.annotations")
	case !in.hasEtcd():
		p.Do(action.RemoveHook{Machine: m.Name, Why: "it has no member of etcd"})
	case m.Spec.Bootstrap.DataSecretName == nil && !m.Status.NodeRef.IsDefined():
		p.Do(action.RemoveHook{Machine: m.Name, Why: "it has no member of etcd: there was no bootstrap data"})
	case !in.isAnyLeft():
		p.Do(action.RemoveHook{Machine: m.Name, Why: "no other Machine would be left to remove its member of etcd"})
	case in.Problem != "":
		p.WaitFor(WaitForEtcd, "Machine %s keeps its member of etcd until the others answer: %s", m.Name, in.Problem).For(machineKind, m.Name).ForTime()
		p.RecheckIn(unhealthyInterval)
	default:
		in.removeMember(m, p)
	}
}

// leaving returns the Machines with the hook that are being deleted, in the order of their deletion.
func (in Input) leaving() []machines.Member {
	var out []machines.Member
	for _, m := range in.Machines {
		if !m.DeletionTimestamp.IsZero() && Has(m.Machine) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b machines.Member) int { return a.DeletionTimestamp.Time.Compare(b.DeletionTimestamp.Time) })
	return out
}

// removeMember transfers leadership away from a Machine, removes its member and then its hook.
func (in Input) removeMember(m machines.Member, p *loop.Plan) {
	member, is := in.Etcd.Of(m.Name)
	if !is {
		p.Do(action.RemoveHook{Machine: m.Name, Why: "it has no member of etcd"})
		return
	}
	if in.Leader == member.Name && member.Health == quorum.Healthy { // an unreachable leader loses leadership when its member is removed
		if to, ok := health.NextLeader(in.Etcd, in.Machines, member.ID); ok {
			p.Do(action.MoveLeader{To: to.ID, Node: to.Name, From: member.Name})
		}
	}
	p.Do(action.RemoveMember{ID: member.ID, Name: member.Text(), Why: "Machine " + m.Name + " is deleted"},
		action.RemoveHook{Machine: m.Name, Why: "its member of etcd is removed"})
}

// RemoveOrphans removes one orphaned member if the quorum permits, and reports whether it does.
func (in Input) RemoveOrphans(p *loop.Plan) bool {
	if !in.Managed || in.Problem != "" {
		return false
	}
	for _, member := range in.Etcd.Orphans() {
		if in.Etcd.Members.AllowsRemoval(member.ID) {
			p.Do(action.RemoveMember{ID: member.ID, Name: member.Text(), Why: "no Machine has it, and no Node runs it"})
			return true
		}
	}
	return false
}
