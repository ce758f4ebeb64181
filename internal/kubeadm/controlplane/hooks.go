package controlplane

import (
	"slices"
	"strings"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/slipwayhq/slipway/internal/condition"
	"github.com/slipwayhq/slipway/internal/kubeadm/controlplane/workload"
	"github.com/slipwayhq/slipway/internal/machines"
	"github.com/slipwayhq/slipway/internal/reconciler"
	"github.com/slipwayhq/slipway/internal/version"
)

// hasHook reports whether a Machine has the hook of its control plane.
func hasHook(m *clusterv1.Machine) bool {
	_, has := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
	return has
}

// isHookReached reports whether the Machine controller waits for the hook.
func isHookReached(m *clusterv1.Machine) bool {
	deleting := condition.Set(m.Status.Conditions).Get(clusterv1.DeletingCondition)
	return hasHook(m) && deleting != nil && deleting.Reason == clusterv1.MachineDeletingWaitingForPreTerminateHookReason
}

// isHookLast reports whether the hook must be removed after all other hooks. Since v1.31 the kubelet of a control plane
// Machine uses the API server on the same Machine, which stops together with its etcd member.
func isHookLast(m *clusterv1.Machine) bool {
	v, err := version.Parse(m.Spec.Version)
	return err != nil || v.Major > 1 || v.Minor >= 31
}

// otherHooks returns the pre-terminate hooks of other owners.
func otherHooks(m *clusterv1.Machine) []string {
	var out []string
	for key := range m.Annotations {
		if strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && key != controlplanev1.PreTerminateHookCleanupAnnotation {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

const (
	// waitForEtcd is the reason for waiting for etcd members.
	waitForEtcd = "WaitingForEtcd"

	hooksMachineKind = "Machine"
	// hooksSoon is the delay until a write is visible in the cache, hooksUnhealthyInterval is the interval while
	// members cannot be removed, and hooksDeletionRecheck is the interval while a Machine is being deleted.
	hooksSoon, hooksUnhealthyInterval, hooksDeletionRecheck = 2 * time.Second, 10 * time.Second, 30 * time.Second
)

// hookInput is the input of decisions about the deletion of Machines.
type hookInput struct {
	Machines machines.OwnedMachines
	// Etcd maps Machines to etcd members. Problem is the reason if the members are unknown. Leader is the name of the
	// leader.
	Etcd            workload.MemberMatching
	Problem, Leader string
	// Managed is true if etcd runs on the Machines. Initialized is true if the cluster exists.
	Managed, Initialized bool
	// IsWritten reports whether this plan writes the Machine, or the last write is not in the cache yet.
	IsWritten func(machines.OwnedMachine) bool
}

// releaseDeleted processes one deleted Machine that waits for the hook, and reports whether there is one. A Machine whose
// member cannot be removed does not block other Machines, because one of them may have to be replaced first.
func (in hookInput) releaseDeleted(p *reconciler.Plan) bool {
	for _, m := range in.deletedMachines() {
		if why := in.memberObstacle(m); why != "" {
			p.WaitFor(waitForEtcd, "Machine %s keeps its member of etcd: %s", m.Name, why).For(hooksMachineKind, m.Name).ForTime()
			p.RecheckIn(hooksUnhealthyInterval)
			continue
		}
		in.releaseMachine(m, p)
		return true
	}
	return false
}

// awaitsMemberRemoval reports whether a deleted Machine only waits for the removal of its etcd member.
func (in hookInput) awaitsMemberRemoval(m machines.OwnedMachine) bool {
	return in.memberObstacle(m) != ""
}

// memberObstacle returns the reason why the member of a Machine cannot be removed now. It is empty if it can be removed, or if
// another step comes first.
func (in hookInput) memberObstacle(m machines.OwnedMachine) string {
	if !isHookReached(m.Machine) || !in.hasEtcd() || in.Problem != "" || !in.isAnyLeft() {
		return ""
	}
	if _, is := in.Etcd.MemberOf(m.Name); !is {
		return in.Etcd.Doubt(m.Name)
	}
	return in.Etcd.Obstacle(m.Name)
}

func (in hookInput) hasEtcd() bool { return in.Managed && in.Initialized }

// isAnyLeft reports whether any Machine is not being deleted.
func (in hookInput) isAnyLeft() bool {
	return slices.ContainsFunc(in.Machines, func(m machines.OwnedMachine) bool { return !m.Deleted })
}

// releaseMachine removes the etcd member and then the hook of a Machine.
func (in hookInput) releaseMachine(m machines.OwnedMachine, p *reconciler.Plan) {
	others := otherHooks(m.Machine)
	switch {
	case in.IsWritten(m):
		p.RecheckIn(hooksSoon)
	case !isHookReached(m.Machine):
		p.RecheckIn(hooksDeletionRecheck)
	case len(others) > 0 && isHookLast(m.Machine):
		p.WaitFor(waitForEtcd, "Waiting for the owners of the other pre-terminate hooks of Machine %s to remove the annotations %s", m.Name, strings.Join(others, ", ")).
			For(hooksMachineKind, m.Name).ToChange("metadata.annotations")
	case !in.hasEtcd():
		p.Do(removeHook{Machine: m.Name, Why: "it has no member of etcd"})
	case m.Spec.Bootstrap.DataSecretName == nil && !m.Status.NodeRef.IsDefined():
		p.Do(removeHook{Machine: m.Name, Why: "it has no member of etcd: there was no bootstrap data"})
	case !in.isAnyLeft():
		p.Do(removeHook{Machine: m.Name, Why: "no other Machine would be left to remove its member of etcd"})
	case in.Problem != "":
		p.WaitFor(waitForEtcd, "Machine %s keeps its member of etcd until the others answer: %s", m.Name, in.Problem).For(hooksMachineKind, m.Name).ForTime()
		p.RecheckIn(hooksUnhealthyInterval)
	default:
		in.removeMember(m, p)
	}
}

// deletedMachines returns the Machines with the hook that are being deleted, in the order of their deletion.
func (in hookInput) deletedMachines() []machines.OwnedMachine {
	var out []machines.OwnedMachine
	for _, m := range in.Machines {
		if !m.DeletionTimestamp.IsZero() && hasHook(m.Machine) {
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b machines.OwnedMachine) int {
		return a.DeletionTimestamp.Time.Compare(b.DeletionTimestamp.Time)
	})
	return out
}

// removeMember transfers leadership away from a Machine, removes its member and then its hook.
func (in hookInput) removeMember(m machines.OwnedMachine, p *reconciler.Plan) {
	member, is := in.Etcd.MemberOf(m.Name)
	if !is {
		p.Do(removeHook{Machine: m.Name, Why: "it has no member of etcd"})
		return
	}
	if in.Leader == member.Name && member.Health == workload.MemberHealthy { // an unreachable leader loses leadership when its member is removed
		if to, ok := workload.NextLeader(in.Etcd, in.Machines, member.ID); ok {
			p.Do(moveLeader{To: to.ID, Node: to.Name, From: member.Name})
		}
	}
	p.Do(removeMember{ID: member.ID, Name: member.Text(), Why: "Machine " + m.Name + " is deleted"},
		removeHook{Machine: m.Name, Why: "its member of etcd is removed"})
}

// removeOrphanedMembers removes one orphaned member if the quorum permits, and reports whether it does.
func (in hookInput) removeOrphanedMembers(p *reconciler.Plan) bool {
	if !in.Managed || in.Problem != "" {
		return false
	}
	for _, member := range in.Etcd.Orphans() {
		if in.Etcd.Members.AllowsRemoval(member.ID) {
			p.Do(removeMember{ID: member.ID, Name: member.Text(), Why: "no Machine has it, and no Node runs it"})
			return true
		}
	}
	return false
}
