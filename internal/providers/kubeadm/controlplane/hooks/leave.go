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
	// WaitForEtcd is the reason of waits for members of etcd.
	WaitForEtcd = "WaitingForEtcd"

	machineKind = "Machine"
	// soon is when to reconcile again after a write that the cache does not show yet, unhealthyInterval while members cannot be removed,
	// deletionRecheck while a Machine is being deleted.
	soon, unhealthyInterval, deletionRecheck = 2 * time.Second, 10 * time.Second, 30 * time.Second
)

// Input is what the deletion of Machines is decided by.
type Input struct {
	Machines machines.Members
	// Etcd is which member runs on which Machine; Problem is why the members are not known, empty: they are. Leader is the name of the leader.
	Etcd            quorum.Matching
	Problem, Leader string
	// Managed: etcd runs on the Machines. Initialized: there is a cluster.
	Managed, Initialized bool
	// IsWritten reports whether a Machine is written in this plan, or the cache does not show the last write.
	IsWritten func(machines.Member) bool
}

// Leave lets a Machine go that waits for the hook, one after the other, and reports whether there is one. A Machine that is held does not
// keep others waiting: it may be that another one has to be replaced first.
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

// IsHeld reports whether a Machine that is deleted waits for nothing but its member of etcd.
func (in Input) IsHeld(m machines.Member) bool { return in.holds(m) != "" }

// holds is why the member of a Machine cannot be removed now; empty: it can, or something else comes first.
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

// isAnyLeft reports whether a Machine stays.
func (in Input) isAnyLeft() bool {
	return slices.ContainsFunc(in.Machines, func(m machines.Member) bool { return !m.Deleted })
}

// leave removes the hook of a Machine, after its member of etcd.
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

// leaving are the Machines that are being deleted and have the hook, in the order in which their deletion began.
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

// removeMember moves the leader away from a Machine, removes its member, then its hook.
func (in Input) removeMember(m machines.Member, p *loop.Plan) {
	member, is := in.Etcd.Of(m.Name)
	if !is {
		p.Do(action.RemoveHook{Machine: m.Name, Why: "it has no member of etcd"})
		return
	}
	if in.Leader == member.Name && member.Health == quorum.Healthy { // a leader that is not reached steps down when it is removed
		if to, ok := health.NextLeader(in.Etcd, in.Machines, member.ID); ok {
			p.Do(action.MoveLeader{To: to.ID, Node: to.Name, From: member.Name})
		}
	}
	p.Do(action.RemoveMember{ID: member.ID, Name: member.Text(), Why: "Machine " + m.Name + " is deleted"},
		action.RemoveHook{Machine: m.Name, Why: "its member of etcd is removed"})
}

// RemoveOrphans removes one member that was left behind, if the quorum stays, and reports whether it does.
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
